/** The transcriber where its memory ends: rows, events and plans larger than its windows, lengths at the borders of their frames. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { compileTable, makeTableSchema } from '@mysync/wire';
import { TYPE } from '../binlog/column-types.ts';
import type { ColumnReader } from '../binlog/row-reader.ts';
import type { RowsEvent } from '../binlog/rows-event.ts';
import { binaryJson } from './binary-json.fixture.ts';
import { blob, block, compared, transcriber } from './compared.fixture.ts';
import { compileTranscription, type TranscribedTable } from './compile-table.ts';

const MIB = 0x10_0000;
const place = { block, file: '', offset: 4, ordinal: 1 };
const tiny: ColumnReader = { ...blob, type: TYPE.TINY, shape: { ...blob.shape, name: 'id', base: 'tinyint' } };
const large: ColumnReader = { ...blob, size: 4, shape: { ...blob.shape, name: 'v' } };

/** A key of a byte, and another column. */
function tableOf(reader: ColumnReader, members: readonly string[] = []): TranscribedTable {
  const { name, charset } = reader.shape;
  const isBytes = reader.decode === undefined && reader.type !== TYPE.JSON;
  const kind = isBytes ? 'bytes' : 'text';
  const schema = makeTableSchema({
    database: 'd',
    table: 't',
    columns: [
      { name: 'id', type: 'tinyint', kind: 'int', keyPosition: 1, nullable: false, charset: '', members: [] },
      { name, type: 'v', kind, keyPosition: 0, nullable: true, charset: isBytes ? 'binary' : charset, members },
    ],
    keyRule: 'primary',
  });
  return compileTranscription(compileTable({ schema }), [tiny, reader]);
}

function image(id: number, value: Uint8Array, lengthBytes = 4): Buffer {
  const head = Buffer.alloc(2 + lengthBytes);
  head[1] = id;
  head.writeUIntLE(value.length, 2, lengthBytes);
  return Buffer.concat([head, value]);
}

function event(images: readonly Uint8Array[], operation: RowsEvent['operation'] = 'insert'): RowsEvent {
  const buffer = Buffer.concat([Buffer.alloc(9, 0x5a), ...images]);
  return { operation, isWhole: true, buffer, start: 9, end: buffer.length };
}

const decode = (buffer: Buffer, start: number, end: number): string => buffer.toString('utf8', start, end);
const text: ColumnReader = { ...large, decode, shape: { ...large.shape, base: 'longtext', charset: 'utf8mb4' } };

describe('rows to records, at the limits:', () => {
  it('an event of more bytes than are looked at at once', () => {
    const sizes = [1.5 * MIB, 100, 1.4 * MIB, 1.3 * MIB, 3.9 * MIB, 0, 200_000, 4 * MIB, 5 * MIB, 70_000, 1];
    const images = sizes.map((size, i) => image(i, Buffer.alloc(size, i)));
    const rows = event(images);
    assert.equal(compared(tableOf(large), rows, place)?.length, sizes.length);
    assert.equal(compared(tableOf(large), event(images, 'delete'), place)?.length, sizes.length);
    assert.equal(compared(tableOf(large), { ...rows, end: rows.end - 1 }, place), undefined);
    assert.throws(() => transcriber.transcribe(tableOf(large), { ...rows, end: rows.end - 1 }, place, []), RangeError);
  });

  it('updates of large rows, with and without their keys', () => {
    const images = [1, 1, 2, 3, 4, 4, 5, 6].map((id, i) => image(id, Buffer.alloc(i < 4 ? 3 * MIB : MIB, i)));
    assert.equal(compared(tableOf(large), event(images, 'update'), place)?.length, 6);
  });

  it('a value that grows beyond the room for it', () => {
    const thrice = (buffer: Buffer, start: number, end: number): string =>
      Array.from(buffer.subarray(start, end), (byte) => String.fromCharCode(0x2000 + byte)).join('');
    const single = { ...text, decode: thrice, isSingleByte: true, shape: { ...text.shape, charset: 'latin1' } };
    const images = [10, 3 * MIB, 20].map((size, i) => image(i, Buffer.alloc(size, 65 + i)));
    assert.equal(compared(tableOf(single), event(images), place)?.length, 3);
  });

  it('more rows than are handed over at once', () => {
    const images = Array.from({ length: 10_001 }, (_, i) => image(i & 0x7f, Buffer.alloc(i & 3, i)));
    assert.equal(compared(tableOf(large), event(images), place)?.length, 10_001);
    assert.equal(compared(tableOf(large), event(images.slice(1), 'update'), place)?.length, 10_000);
  });

  it('texts and documents of lengths at the borders of frames', () => {
    const lengths = [
      0, 1, 122, 123, 124, 125, 126, 127, 128, 16_376, 16_379, 16_380, 16_381, 16_384, 70_000, 2_097_150,
    ];
    const plain = lengths.map((length, i) => image(i, Buffer.alloc(length, 'x')));
    assert.equal(compared(tableOf(text), event(plain), place)?.length, lengths.length);
    const json = { ...large, type: TYPE.JSON, shape: { ...large.shape, base: 'json', charset: 'utf8mb4' } } as const;
    // quotes make the text longer than the document, backslashes much longer
    const documents = lengths.flatMap((length, i) =>
      ['x', '"'].map((letter) => image(i, binaryJson({ kind: 'string', bytes: Buffer.alloc(length >> 1, letter) }))),
    );
    assert.equal(compared(tableOf(json), event(documents), place)?.length, documents.length);
  });

  it('more plans than there is room for', () => {
    const tables = Array.from({ length: 12 }, (_, i) => {
      const members = Array.from(
        { length: 9000 },
        (_member, n) => `${i} and ${n} ${'and a rather long member'.repeat(2)}`,
      );
      const shape = { ...text.shape, base: 'enum', members } as const;
      return tableOf({ ...text, type: TYPE.ENUM, size: 2, shape }, members);
    });
    for (let round = 0; round < 2; round += 1) {
      for (const [i, table] of tables.entries()) {
        const rows = event([Buffer.of(0, 1, i, 1), Buffer.of(0, 2, 0, 0), Buffer.of(2, 3)]);
        assert.equal(compared(table, rows, place)?.length, 3);
      }
    }
  });

  it('a table that is left to the reference', () => {
    const table = { ...tableOf(text), image: null };
    assert.equal(compared(table, event([image(1, Buffer.from('a')), image(2, Buffer.from('b'))]), place)?.length, 2);
  });

  it('a process without WebAssembly', async () => {
    const file = fileURLToPath(new URL('./module.js', import.meta.url));
    const script = `import { TranscriberModule } from ${JSON.stringify(file)}; console.log(TranscriberModule.make());`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--jitless', '--input-type=module', '-e', script]);
    assert.equal(stdout.trim(), 'undefined');
  });
});
