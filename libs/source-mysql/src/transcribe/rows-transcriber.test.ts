/** The transcriber against the reference, over random tables of all types, and against bytes that are no rows. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileTable, type EncodedRow, makeTableSchema } from '@mysync/wire';
import fc from 'fast-check';
import { TYPE } from '../binlog/column-types.ts';
import type { RowsEvent } from '../binlog/rows-event.ts';
import { blob, block, compared, transcriber } from './compared.fixture.ts';
import { compileTranscription } from './compile-table.ts';
import { rowsOf, type TableCase, tables } from './random-rows.fixture.ts';
import type { EventPlace } from './rows-transcriber.ts';

const places = fc.record({
  block: fc.constant(block),
  file: fc.constantFrom('', 'binlog.000042', 'binlog.000041'),
  offset: fc.constantFrom(4, 1_300_000, 0x1_0000_0000),
  ordinal: fc.constantFrom(1, 126, 127, 16_382, 2_097_151, 300),
});

const numRuns = Number(process.env['MYSYNC_RUNS'] ?? 400);

const key = { name: 'k', type: 'blob', kind: 'bytes', nullable: false, charset: 'binary', members: [] } as const;
const cases = tables.chain((table) => fc.tuple(fc.constant(table), rowsOf(table), places));

describe('rows to records', () => {
  it('are those of the reference, byte for byte', () => {
    const kept: { records: EncodedRow[]; copy: Buffer[] }[] = [];
    let refused = 0;
    fc.assert(
      fc.property(cases, ([{ table }, rows, place]) => {
        const records = compared(table, rows, place);
        if (records === undefined) refused += 1;
        else if (kept.length < 100) {
          kept.push({ records, copy: records.map((record) => Buffer.concat([record.key, record.payload])) });
        }
      }),
      { numRuns },
    );
    // half a surrogate pair in UTF-16 is text for neither
    assert.ok(refused < numRuns / 5, `${refused} were refused`);
    // what was handed over is never written again
    for (const { records, copy } of kept) {
      for (const [i, record] of records.entries()) {
        assert.ok(copy[i]?.equals(Buffer.concat([record.key, record.payload])));
      }
    }
  });

  it('of an update that changes the end of a long key are two', () => {
    // the lengths in front of such a value hold the bytes that are tags of FLOAT and DOUBLE elsewhere
    for (const length of [4750, 4800, 5300, 40, 10, 7, 5]) {
      const schema = makeTableSchema({
        database: 'd',
        table: 't',
        columns: [{ ...key, keyPosition: 1 }],
        keyRule: 'primary',
      });
      const plan = compileTable({ schema });
      const table = compileTranscription(plan, [blob]);
      const value = (end: number): Buffer => {
        const bytes = Buffer.alloc(1 + 2 + length);
        bytes.writeUInt16LE(length, 1);
        bytes[bytes.length - 1] = end;
        return bytes;
      };
      for (const [next, count] of [
        [1, 1],
        [2, 2],
      ] as const) {
        const buffer = Buffer.concat([value(1), value(next)]);
        const rows = { operation: 'update', isWhole: true, buffer, start: 0, end: buffer.length } as const;
        assert.equal(compared(table, rows, { block, file: '', offset: 4, ordinal: 1 })?.length, count);
      }
    }
  });

  it('of an update of a real key from 0 to -0 is one, to anything else two', () => {
    for (const [type, base, size] of [
      [TYPE.FLOAT, 'float', 4],
      [TYPE.DOUBLE, 'double', 8],
    ] as const) {
      const schema = makeTableSchema({
        database: 'd',
        table: 't',
        columns: [{ ...key, type: base, kind: base, charset: '', keyPosition: 1 }],
        keyRule: 'primary',
      });
      const table = compileTranscription(compileTable({ schema }), [
        { ...blob, type, size, shape: { ...blob.shape, base } },
      ]);
      const image = (value: number): Buffer => {
        const bytes = Buffer.alloc(1 + size);
        if (type === TYPE.FLOAT) bytes.writeFloatLE(value, 1);
        else bytes.writeDoubleLE(value, 1);
        return bytes;
      };
      for (const [before, after, count] of [
        [0, -0, 1],
        [-0, 0, 1],
        [1.5, 1.5, 1],
        [0, 1.5, 2],
        [1.5, -1.5, 2],
      ] as const) {
        const buffer = Buffer.concat([image(before), image(after)]);
        const rows = { operation: 'update', isWhole: true, buffer, start: 0, end: buffer.length } as const;
        assert.equal(compared(table, rows, { block, file: '', offset: 4, ordinal: 1 })?.length, count);
      }
    }
  });

  it('of JSON that uses its bytes twice are refused by both', () => {
    const plan = compileTable({
      schema: makeTableSchema({
        database: 'd',
        table: 't',
        columns: [{ ...key, type: 'json', kind: 'text', charset: 'utf8mb4', keyPosition: 0 }],
        keyRule: 'row-hash',
      }),
    });
    const json = { ...blob, type: TYPE.JSON, size: 4, shape: { ...blob.shape, base: 'json' } } as const;
    const table = compileTranscription(plan, [json]);
    const levels = Array.from({ length: 90 }, () => Buffer.from('02000a00020a00020a00', 'hex'));
    const document = Buffer.concat([Buffer.of(2), ...levels, Buffer.from('00000400', 'hex')]);
    const head = Buffer.alloc(5);
    head.writeUInt32LE(document.length, 1);
    const buffer = Buffer.concat([head, document]);
    const rows = { operation: 'insert', isWhole: true, buffer, start: 0, end: buffer.length } as const;
    assert.equal(compared(table, rows, { block, file: '', offset: 4, ordinal: 1 }), undefined);
    assert.throws(() => transcriber.transcribe(table, rows, { block, file: '', offset: 4, ordinal: 1 }, []), /twice/);
  });

  it('of damaged bytes are those of the reference, or both refuse them', () => {
    let refused = 0;
    fc.assert(
      fc.property(cases.chain(damaged), ([{ table }, rows, place]) => {
        if (compared(table, rows, place) === undefined) refused += 1;
      }),
      { numRuns: numRuns * 2 },
    );
    assert.ok(refused > numRuns / 4, `${refused} were refused`);
  });
});

type Case = readonly [TableCase, RowsEvent, EventPlace];

/** Cut off, with other bits, or with a number far too large somewhere. */
function damaged([table, rows, place]: Case): fc.Arbitrary<Case> {
  const length = rows.end - rows.start;
  return fc
    .record({
      how: fc.constantFrom('cut', 'bit', 'bits', 'number', 'noise'),
      at: fc.integer({ min: 0, max: length - 1 }),
      more: fc.array(fc.integer({ min: 0, max: length * 8 - 1 }), { minLength: 1, maxLength: 8 }),
      noise: fc.uint8Array({ minLength: 1, maxLength: 8 }),
      number: fc.constantFrom('ffffffff', 'ffffff7f', '00000080', 'ffff', 'fffffffffffffff0'),
    })
    .map(({ how, at, more, noise, number }): Case => {
      const buffer = Buffer.from(rows.buffer);
      if (how === 'cut') return [table, { ...rows, buffer, end: rows.start + at }, place];
      if (how === 'number') buffer.set(Buffer.from(number, 'hex').subarray(0, length - at), rows.start + at);
      else if (how === 'noise') buffer.set(noise.subarray(0, length - at), rows.start + at);
      else {
        for (const bit of how === 'bit' ? more.slice(0, 1) : more) {
          const byte = rows.start + (bit >> 3);
          buffer[byte] = (buffer[byte] ?? 0) ^ (1 << (bit & 7));
        }
      }
      return [table, { ...rows, buffer }, place];
    });
}
