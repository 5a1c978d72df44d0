import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseGtidSet } from '@mysync/core';
import fc from 'fast-check';
import { ByteReader } from './byte-reader.ts';
import { mysqlGtidSetBytes, readMysqlGtidSet, readSignedVarint, readVarint } from './gtid-bytes.ts';

const UUID = '3e11fa47-71ca-11e1-9e33-c80aa9429562';

function readBack(text: string): string {
  const bytes = mysqlGtidSetBytes(text);
  const reader = new ByteReader(bytes, 0, bytes.length);
  const set = readMysqlGtidSet(reader);
  assert.equal(reader.left, 0);
  return set;
}

describe('binary GTID sets', () => {
  it('is the form of MySQL without tags', () => {
    assert.equal(
      mysqlGtidSetBytes(`${UUID}:1-5`).toString('hex'),
      // one entry, its UUID, one interval, 1 and the exclusive 6
      `0100000000000000${UUID.replaceAll('-', '')}010000000000000001000000000000000600000000000000`,
    );
  });

  it('is the form of MySQL with tags', () => {
    assert.equal(
      mysqlGtidSetBytes(`${UUID}:ab:7`).toString('hex'),
      `0101000000000001${UUID.replaceAll('-', '')}046162010000000000000007000000000000000800000000000000`,
    );
  });

  it('reads back what it writes', () => {
    const range = fc.tuple(fc.integer({ min: 1, max: 1e15 }), fc.integer({ min: 0, max: 1000 }));
    const tag = fc.constantFrom('', ':tag', ':_other9');
    const entry = fc.tuple(fc.uuid(), tag, fc.array(range, { minLength: 1, maxLength: 5 }));
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 8 }), (entries) => {
        const text = entries
          .map(
            ([uuid, name, ranges]) =>
              `${uuid}${name}:${ranges.map(([from, more]) => `${from}-${from + more}`).join(':')}`,
          )
          .join(',');
        assert.equal(readBack(text), parseGtidSet('mysql', text).toString());
      }),
    );
  });

  it('reads the integers of the serialization library', () => {
    // encodings worked out by hand from the description: ones at the end of the first byte count the bytes that follow
    const cases: [string, number][] = [
      ['00', 0],
      ['fe', 127],
      ['0102', 128],
      ['fdff', 16383],
      ['030002', 16384],
      ['ff0100000000000000', 1],
    ];
    for (const [hex, value] of cases) {
      const bytes = Buffer.from(hex, 'hex');
      assert.equal(readVarint(new ByteReader(bytes, 0, bytes.length)), value, hex);
    }
    const signed = Buffer.from([0x02 << 1, 0x01 << 1]);
    const reader = new ByteReader(signed, 0, 2);
    assert.equal(readSignedVarint(reader), 1);
    assert.equal(readSignedVarint(reader), -1);
  });
});
