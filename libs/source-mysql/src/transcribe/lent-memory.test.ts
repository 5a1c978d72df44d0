/** Records are written where they stay: what was given back is written over, and nothing else. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EncodedRow } from '@mysync/wire';
import fc from 'fast-check';
import { block, compared, transcriber } from './compared.fixture.ts';
import { SLAB_BYTES, SLAB_COUNT } from './layout.ts';
import { rowsOf, tables } from './random-rows.fixture.ts';

const place = { block, file: '', offset: 4, ordinal: 1 };

interface Kept {
  readonly record: EncodedRow;
  readonly copy: Buffer;
}

const bytesOf = ({ slab, start, end }: EncodedRow): Buffer => Buffer.from(slab.subarray(start, end));
const keep = (record: EncodedRow): Kept => ({ record, copy: bytesOf(record) });
const intact = ({ record, copy }: Kept): void => assert.ok(copy.equals(bytesOf(record)));

/** Of all types. */
function sampleEvents(): (readonly [Parameters<typeof compared>[0], Parameters<typeof compared>[1]])[] {
  const cases = tables.chain((table) => fc.tuple(fc.constant(table), rowsOf(table)));
  return fc.sample(cases, { numRuns: 60, seed: 7 }).map(([{ table }, rows]) => [table, rows] as const);
}

describe('memory of records', () => {
  it('is written over once its records were given back, and not before', () => {
    const events = sampleEvents();
    const kept = new Map<number, Kept>();
    const slabs = new Map<Uint8Array, number>();
    let made = 0;
    let again = 0;
    for (let round = 0; round < 60; round += 1) {
      for (const [table, rows] of events) {
        for (const record of compared(table, rows, place) ?? []) {
          made += 1;
          const before = slabs.get(record.slab);
          if (before !== undefined && before < made - 300) again += 1;
          slabs.set(record.slab, made);
          // one in seven stays for a while, as messages that were not acked do
          if (made % 7 === 0) kept.set(made, keep(record));
          else record.giveBack();
          const old = kept.get(made - 700);
          if (old === undefined) continue;
          intact(old);
          old.record.giveBack();
          kept.delete(made - 700);
        }
      }
    }
    for (const each of kept.values()) {
      intact(each);
      each.record.giveBack();
    }
    assert.ok(again > 100, `${again} times memory was begun again`);
  });

  it('may be kept for good: other memory is found, and what is lent is used again once it comes back', () => {
    const [table, rows] = sampleEvents()[0] as ReturnType<typeof sampleEvents>[0];
    const kept: Kept[] = [];
    const seen = new Set<Uint8Array>();
    for (let bytes = 0; bytes < SLAB_COUNT * SLAB_BYTES * 1.2; ) {
      const records: EncodedRow[] = [];
      transcriber.transcribe(table, rows, place, records);
      for (const record of records) {
        bytes += record.bytes;
        seen.add(record.slab);
        kept.push(keep(record));
      }
    }
    assert.ok(seen.size > SLAB_COUNT, `${seen.size} slabs`);
    for (const each of kept) intact(each);
    for (const { record } of kept) record.giveBack();
    const records: EncodedRow[] = [];
    for (let i = 0; i < 100; i += 1) transcriber.transcribe(table, rows, place, records);
    assert.ok(records.some(({ slab }) => seen.has(slab)));
    for (const record of records) record.giveBack();
  });
});
