/** Memory that is used again is overwritten here as soon as it is given back: whatever still lies in it is then wrong. */
import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { describe, it } from 'node:test';
import { EncodedRow } from '@mysync/wire';
import fc from 'fast-check';
import type { SourceItem, SourceRow } from '../port.ts';
import { TransactionSpool } from './transaction-spool.ts';

const SLAB_BYTES = 4096;
const KEY_BYTES = 4;

/** Rows in slabs, one after the other, as a transcriber lays them; each says its number throughout. */
class Rows {
  readonly slabs = new Set<Uint8Array>();
  readonly #free: Buffer[] = [];
  #slab: Buffer = Buffer.alloc(0);
  #at = 0;

  next(number: number, bytes: number, isReference: boolean): EncodedRow {
    const length = bytes + KEY_BYTES;
    if (isReference) return row(Buffer.alloc(length), 0, length, number);
    if (this.#slab.length - this.#at < length) {
      this.#slab = this.#free.pop() ?? Buffer.alloc(SLAB_BYTES);
      this.slabs.add(this.#slab);
      this.#at = 0;
    }
    this.#at += length;
    return row(this.#slab, this.#at - length, this.#at, number);
  }

  /** How many were taken. */
  giveBack(slabs: Iterable<Uint8Array>): number {
    let taken = 0;
    for (const slab of slabs) {
      if (slab === this.#slab || !this.slabs.has(slab)) continue;
      slab.fill(0xdb);
      this.#free.push(slab as Buffer);
      taken += 1;
    }
    return taken;
  }
}

function row(slab: Buffer, start: number, end: number, number: number): EncodedRow {
  for (let at = start; at + 4 <= end; at += 4) slab.writeUInt32LE(number, at);
  return new EncodedRow(slab, start, end - KEY_BYTES, end, false, number, number);
}

function intact(item: SourceItem, number: number): void {
  assert.ok(item.kind === 'row' || item.kind === 'ddl');
  assert.equal(item.ordinal, number);
  if (item.kind !== 'row') return;
  const { slab, start, end } = item;
  // its end is marked in the transaction's last row
  const bytes = Buffer.from(slab.subarray(start, end - KEY_BYTES - 4));
  assert.deepEqual(bytes, Buffer.alloc(bytes.length, Buffer.from(new Uint32Array([number]).buffer)));
}

describe('memory of a large transaction', () => {
  const step = fc.oneof(
    {
      weight: 20,
      arbitrary: fc.record({ kind: fc.constant('add' as const), quarter: fc.integer({ min: 4, max: 250 }) }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('reference' as const), quarter: fc.constant(100) }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constantFrom('mark' as const, 'back' as const), quarter: fc.constant(0) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constantFrom('end' as const, 'ddl' as const), quarter: fc.constant(0) }),
    },
  );

  it('slabs that are freed hold nothing that anybody has', () => {
    let taken = 0;
    fc.assert(
      fc.property(fc.array(step, { minLength: 100, maxLength: 400 }), (steps) => {
        const rows = new Rows();
        const spool = new TransactionSpool({ memoryBytes: 20_000, folder: tmpdir() });
        const handedOver: [SourceItem, number][] = [];
        let held: number[] = [];
        let marked: number | undefined;
        let number = 0;
        const end = (): void => {
          const items = [...spool.drain()].flat();
          for (const [i, expected] of held.entries()) handedOver.push([items[i] as SourceItem, expected]);
          assert.equal(items.length, held.length);
          held = [];
          marked = undefined;
        };
        for (const { kind, quarter } of steps) {
          if (kind === 'ddl') {
            number += 1;
            const from = spool.tail.length;
            held.push(number);
            spool.tail.push({ kind: 'ddl', table: { database: 'd', table: 't' }, statement: 'x', ordinal: number });
            taken += rows.giveBack(spool.grown(from));
          } else if (kind === 'mark') {
            spool.mark('a');
            marked = held.length;
          } else if (kind === 'back') {
            if (marked === undefined) continue;
            spool.rollbackTo('a');
            held = held.slice(0, marked);
          } else if (kind === 'end') end();
          else {
            number += 1;
            const from = spool.tail.length;
            held.push(number);
            (spool.tail as SourceRow[]).push(rows.next(number, quarter * 4, kind === 'reference'));
            taken += rows.giveBack(spool.grown(from));
          }
        }
        end();
        for (const [item, expected] of handedOver) intact(item, expected);
        spool.close();
      }),
      { numRuns: 300 },
    );
    assert.ok(taken > 100, `${taken} slabs were used again`);
  });

  it('pieces of the file are read into again once all their rows are back, and not before', () => {
    const keptRows = fc.func(fc.boolean());
    fc.assert(
      fc.property(
        keptRows,
        fc.array(fc.integer({ min: 4, max: 60_000 }), { minLength: 60, maxLength: 80 }),
        (isKept, sizes) => {
          const spool = new TransactionSpool({ memoryBytes: 6000, folder: tmpdir() });
          for (const [i, quarter] of sizes.entries()) {
            const from = spool.tail.length;
            (spool.tail as SourceRow[]).push(row(Buffer.alloc(quarter * 4 + KEY_BYTES), 0, quarter * 4 + KEY_BYTES, i));
            spool.grown(from);
          }
          const kept: [SourceItem, number][] = [];
          let i = 0;
          for (const batch of spool.drain()) {
            for (const item of batch) {
              intact(item, i);
              if (isKept(i)) kept.push([item, i]);
              else (item as SourceRow).giveBack();
              i += 1;
            }
          }
          assert.equal(i, sizes.length);
          for (const [item, number] of kept) intact(item, number);
          spool.close();
        },
      ),
      { numRuns: 40 },
    );
  });

  it('reading back takes one piece where every row is given back at once', () => {
    const spool = new TransactionSpool({ memoryBytes: 6000, folder: tmpdir() });
    for (let i = 0; i < 1000; i += 1) {
      const from = spool.tail.length;
      (spool.tail as SourceRow[]).push(row(Buffer.alloc(10_000), 0, 10_000, i));
      spool.grown(from);
    }
    const pieces = new Set<Uint8Array>();
    for (const batch of spool.drain()) {
      for (const item of batch) {
        pieces.add((item as SourceRow).slab);
        (item as SourceRow).giveBack();
      }
    }
    // two by turns, and the slab of the last row, which never went to the file
    assert.equal(pieces.size, 3);
    spool.close();
  });
});
