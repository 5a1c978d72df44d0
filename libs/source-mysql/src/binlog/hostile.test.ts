/** Counts and lengths that no event can hold: refused, and nothing is taken for them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { deflateSync } from 'node:zlib';
import { binaryJsonText } from '../json/binary-json.ts';
import { EVENT } from './column-types.ts';
import { inflateColumn, inflateEvent } from './compression.ts';
import { readControlEvent } from './control-events.ts';
import { readTableId, readTableMap } from './table-map.ts';

const HUGE = Buffer.from('feffffffffffff1f00', 'hex'); // 2^53 - 1

function refusedAtNoCost(what: string, work: () => unknown): void {
  const before = process.memoryUsage();
  assert.throws(work, RangeError, what);
  const after = process.memoryUsage();
  assert.ok(after.arrayBuffers - before.arrayBuffers < 20 << 20, what);
  assert.ok(after.heapUsed - before.heapUsed < 60 << 20, what);
}

/** A table map of one column of this type, with these optional fields. */
function map(columns: Buffer, type: number, ...fields: readonly Buffer[]): Buffer {
  const head = Buffer.from('0102030405060000016400017400', 'hex');
  return Buffer.concat([head, columns, Buffer.from([type]), Buffer.from('02ff0100', 'hex'), ...fields]);
}

describe('absurd counts', () => {
  const read = (bytes: Buffer) => readTableMap(bytes, 0, bytes.length, 'mysql');

  it('of columns, members and fields in a table map', () => {
    const enumType = 254;
    const members = (count: Buffer) => Buffer.concat([Buffer.from([6, count.length + 1]), count, Buffer.from([0])]);
    const whole = map(Buffer.from([1]), enumType, members(Buffer.from([1])));
    whole[whole.length - 8] = 0xf7; // ENUM in STRING's clothes
    assert.equal(read(map(Buffer.from([1]), 3)).columnCount, 1);
    refusedAtNoCost('columns', () => read(map(HUGE.subarray(0, 9), 3)));
    refusedAtNoCost('a million columns', () => {
      const codes = Buffer.alloc(1_000_000, 3);
      return read(
        Buffer.concat([Buffer.from('0102030405060000016400017400fd40420f', 'hex'), codes, Buffer.alloc(200_000)]),
      );
    });
    for (const hex of ['feffffffffffff1f00', 'feffffff3f00000000', 'fdffffff']) {
      const bytes = Buffer.concat([
        Buffer.from('010203040506000001640001740001', 'hex'),
        Buffer.from([enumType]),
        Buffer.from('02f70100', 'hex'),
        members(Buffer.from(hex, 'hex')),
      ]);
      refusedAtNoCost(`members ${hex}`, () => read(bytes));
    }
    refusedAtNoCost('fields', () => read(map(Buffer.from([1]), 3, Buffer.alloc(2_000_000, 0x0c))));
    for (let length = 0; length < 8; length += 1) {
      const buffer = Buffer.alloc(40, 0xee);
      assert.equal(readTableId({ buffer, start: 4, end: 4 + length }), -1, 'bytes behind the event');
    }
  });

  it('of what is compressed', () => {
    const bomb = deflateSync(Buffer.alloc(64 << 20));
    refusedAtNoCost('an event that is longer than it says', () =>
      inflateEvent(Buffer.concat([Buffer.from([0x82, 1, 0]), bomb])),
    );
    refusedAtNoCost('an event of 4 GiB', () =>
      inflateEvent(Buffer.concat([Buffer.from([0x84, 255, 255, 255, 255]), bomb])),
    );
    refusedAtNoCost('a column', () => inflateColumn(Buffer.concat([Buffer.from([0x82, 1, 0]), bomb])));
  });

  it('of GTIDs and names in control events', () => {
    const control = (type: number, hex: string) => {
      const bytes = Buffer.from(hex, 'hex');
      return readControlEvent(type, 1, bytes, 0, bytes.length);
    };
    const uuid = '00'.repeat(16);
    refusedAtNoCost('UUIDs', () => control(EVENT.PREVIOUS_GTIDS, 'ffffffffffff1f00'));
    refusedAtNoCost('intervals', () => control(EVENT.PREVIOUS_GTIDS, `0100000000000000${uuid}ffffffffffff1f00`));
    refusedAtNoCost('MariaDB GTIDs', () => control(EVENT.MARIADB_GTID_LIST, 'ffffff0f'));
    refusedAtNoCost('an XID', () => control(EVENT.XA_PREPARE, `0001000000ffffffff00000000${uuid}`));
    refusedAtNoCost('a tagged GTID', () => control(EVENT.GTID_TAGGED, '02ff7f00'));
  });
});

describe('JSON that is nested beyond all measure', () => {
  it('is refused or printed, and breaks nothing', () => {
    for (const depth of [101, 10_000, 1_000_000]) {
      // arrays of one array each: count, bytes, type, offset of the next
      const step = Buffer.from('010007000207000000', 'hex').subarray(0, 7);
      const document = Buffer.concat([
        Buffer.of(2),
        ...Array.from({ length: depth }, () => step),
        Buffer.from('00000400', 'hex'),
      ]);
      try {
        assert.ok(binaryJsonText(document, 0, document.length).length > depth);
      } catch (error) {
        assert.ok(error instanceof RangeError, String(error));
      }
    }
  });

  it('is refused where it points back to itself', () => {
    for (const hex of ['0201000700020000', '02010007000200000000', '000100120000000b0001000200610000']) {
      const document = Buffer.from(hex, 'hex');
      assert.throws(() => binaryJsonText(document, 0, document.length), RangeError, hex);
    }
  });
});
