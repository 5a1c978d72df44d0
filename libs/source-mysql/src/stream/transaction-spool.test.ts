import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { describe, it } from 'node:test';
import { isMysyncError } from '@mysync/core';
import {
  compileTable,
  type EncodedRow,
  encodeTransaction,
  MessageDecoder,
  makeTableSchema,
  RowEncoder,
} from '@mysync/wire';
import fc from 'fast-check';
import type { SourceItem } from '../port.ts';
import { TransactionSpool } from './transaction-spool.ts';

const column = {
  name: 'id',
  type: 'int',
  kind: 'int',
  keyPosition: 1,
  nullable: false,
  charset: '',
  members: [],
} as const;
const plan = compileTable({
  schema: makeTableSchema({ database: 'd', table: 't', columns: [column], keyRule: 'primary' }),
});
const block = encodeTransaction({
  source: 's',
  serverUuid: 'u',
  id: { file: 'f.1', offset: 4, gtid: '', ordinal: 0 },
  commitTimeMicros: 1,
});
const encoder = new RowEncoder();

function add(spool: TransactionSpool, id: number): void {
  const from = spool.tail.length;
  const change = {
    operation: 'insert',
    eventFile: '',
    eventOffset: 4,
    ordinal: spool.count + 1,
    before: null,
    after: [id],
  } as const;
  encoder.rowChange(plan, block, change, spool.tail as EncodedRow[]);
  spool.grown(from);
}

function drained(spool: TransactionSpool): { ids: unknown[]; ordinals: number[]; last: boolean[] } {
  const decoder = new MessageDecoder();
  const items: SourceItem[] = [];
  for (const batch of spool.drain()) items.push(...batch);
  const rows = items.flatMap((item) => (item.kind === 'row' ? [item] : []));
  const messages = rows.map((row) => decoder.decode(row.payload));
  return {
    ids: messages.map((message) => ('after' in message ? message.after?.[0] : undefined)),
    ordinals: rows.map((row) => row.ordinal),
    last: messages.map((message) => message.lastInTransaction),
  };
}

type Step =
  | { readonly kind: 'add'; readonly count: number }
  | { readonly kind: 'mark' | 'back'; readonly name: string };

const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('add' as const), count: fc.integer({ min: 1, max: 12 }) }),
    fc.record({ kind: fc.constantFrom('mark' as const, 'back' as const), name: fc.constantFrom('a', 'b', 'c') }),
  ),
  { maxLength: 40 },
);

describe('the spool of a transaction', () => {
  it('gives what a plain list with savepoints gives, from memory or from its file', () => {
    fc.assert(
      fc.property(steps, fc.constantFrom(500, 2000, 1_000_000), (plan: readonly Step[], memoryBytes) => {
        const spool = new TransactionSpool({ memoryBytes, folder: tmpdir() });
        let list: number[] = [];
        const marks = new Map<string, number>();
        let next = 0;
        for (const step of plan) {
          if (step.kind === 'add') {
            for (let i = 0; i < step.count; i += 1) {
              next += 1;
              list.push(next);
              add(spool, next);
            }
          } else if (step.kind === 'mark') {
            marks.set(step.name, list.length);
            spool.mark(step.name);
          } else {
            const mark = marks.get(step.name);
            assert.equal(spool.rollbackTo(step.name), mark !== undefined);
            if (mark === undefined) continue;
            list = list.slice(0, mark);
            for (const [name, count] of marks) if (count > mark) marks.delete(name);
          }
          assert.equal(spool.count, list.length);
        }
        spool.seal();
        const out = drained(spool);
        assert.deepEqual(out.ids, list);
        assert.deepEqual(
          out.ordinals,
          list.map((_, i) => i + 1),
        );
        assert.deepEqual(
          out.last,
          list.map((_, i) => i === list.length - 1),
        );
        assert.equal(spool.count, 0);
        // and it serves the next transaction
        add(spool, 7);
        assert.deepEqual(drained(spool).ids, [7]);
        spool.close();
      }),
      { numRuns: 200 },
    );
  });

  it('keeps no more than its share in memory', () => {
    const spool = new TransactionSpool({ memoryBytes: 10_000, folder: tmpdir() });
    for (let id = 0; id < 5000; id += 1) {
      add(spool, id);
      assert.ok(spool.memoryBytes <= 10_000);
    }
    spool.close();
  });

  it('takes rows of whatever size through its file', () => {
    const text = { ...column, name: 'v', type: 'longtext', kind: 'text', keyPosition: 0, charset: 'utf8mb4' } as const;
    const wide = compileTable({
      schema: makeTableSchema({ database: 'd', table: 'w', columns: [column, text], keyRule: 'primary' }),
    });
    const spool = new TransactionSpool({ memoryBytes: 1000, folder: tmpdir() });
    // around the piece in which it writes, and far beyond
    const around = Array.from({ length: 40 }, (_, i) => (1 << 20) - 400 + i * 16);
    const sizes = [3, ...around, 5, 3 << 20, 7, 600_000, 600_000, 1];
    for (const [id, size] of sizes.entries()) {
      const from = spool.tail.length;
      const after = [id, String.fromCharCode(97 + (id % 26)).repeat(size)];
      const change = { operation: 'insert', eventFile: '', eventOffset: 4, before: null, after } as const;
      encoder.rowChange(wide, block, { ...change, ordinal: spool.count + 1 }, spool.tail as EncodedRow[]);
      spool.grown(from);
    }
    spool.seal();
    const decoder = new MessageDecoder();
    const texts = [...spool.drain()].flat().map((item) => {
      const message = item.kind === 'row' ? decoder.decode(item.payload) : undefined;
      return message !== undefined && 'after' in message ? String(message.after?.[1]) : '';
    });
    assert.deepEqual(
      texts.map((value) => [value.length, new Set(value).size]),
      sizes.map((size) => [size, 1]),
    );
    spool.close();
  });

  it('says where it could not write', () => {
    const spool = new TransactionSpool({ memoryBytes: 500, folder: '/nonexistent/folder' });
    assert.throws(
      () => {
        for (let id = 0; id < 10; id += 1) add(spool, id);
      },
      (error) => isMysyncError(error, 'SOURCE_SPOOL_FAILED') && /nonexistent/.test(error.message),
    );
  });
});
