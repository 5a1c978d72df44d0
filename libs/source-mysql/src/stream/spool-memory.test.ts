/** Memory that is used again is overwritten here as soon as it is given back: whatever still lies in it is then wrong. */
import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { describe, it } from 'node:test';
import { EncodedRow, type RowLender } from '@mysync/wire';
import fc from 'fast-check';
import type { SourceItem, SourceRow } from '../port.ts';
import { TransactionSpool } from './transaction-spool.ts';

const KEY_BYTES = 4;

/** Rows in memory that is lent, each of which says its number throughout. */
class Rows {
  /** How many were given back. */
  back = 0;

  next(number: number, bytes: number): EncodedRow {
    const slab = Buffer.alloc(bytes + KEY_BYTES);
    let isBack = false;
    const takeBack = (): void => {
      assert.equal(isBack, false, 'given back twice');
      isBack = true;
      slab.fill(0xdb);
      this.back += 1;
    };
    return row(slab, 0, slab.length, number, { takeBack });
  }
}

function row(slab: Buffer, start: number, end: number, number: number, lender?: RowLender): EncodedRow {
  for (let at = start; at + 4 <= end; at += 4) slab.writeUInt32LE(number, at);
  return new EncodedRow(slab, start, end - KEY_BYTES, end, false, number, number, lender);
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
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constantFrom('mark' as const, 'back' as const), quarter: fc.constant(0) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constantFrom('end' as const, 'ddl' as const), quarter: fc.constant(0) }),
    },
  );

  it('rows are given back once, those that nobody was handed', () => {
    let back = 0;
    fc.assert(
      fc.property(fc.array(step, { minLength: 100, maxLength: 400 }), (steps) => {
        const rows = new Rows();
        const spool = new TransactionSpool({ memoryBytes: 20_000, folder: tmpdir() });
        const handedOver: [SourceItem, number][] = [];
        let held: number[] = [];
        let marked: number | undefined;
        let number = 0;
        let added = 0;
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
            spool.grown(from);
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
            added += 1;
            (spool.tail as SourceRow[]).push(rows.next(number, quarter * 4));
            spool.grown(from);
          }
        }
        end();
        back += rows.back;
        for (const [item, expected] of handedOver) {
          intact(item, expected);
          if (item.kind === 'row') item.giveBack();
        }
        // those that came out of the file were given back when they went into it
        assert.equal(rows.back, added);
        spool.close();
      }),
      { numRuns: 300 },
    );
    assert.ok(back > 1000, `${back} rows were given back before they were handed over`);
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
