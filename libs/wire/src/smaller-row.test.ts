import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { changes, encodeCase } from './cases.fixture.ts';
import { type EncodedRow, MessageDecoder, smallerRow } from './index.ts';
import { BaseMessageType, toPlain } from './protobufjs-codec.fixture.ts';

const ABSENT = {};

/** Each smaller message of a change, as another decoder reads it, and what must be left of it. */
function steps(row: EncodedRow): EncodedRow[] {
  const found: EncodedRow[] = [];
  for (let next = smallerRow(row); next !== null; next = smallerRow(next)) found.push(next);
  return found;
}

test('a smaller message is the same change without the image before, then without the row, as protobufjs reads it', () => {
  let withheld = 0;
  fc.assert(
    fc.property(changes, (made) => {
      const row = encodeCase(made);
      const whole = toPlain(row.payload);
      const { columns } = made.table.schema;
      for (const smaller of steps(row)) {
        const read = toPlain(smaller.payload);
        const { before, after, operation, ...rest } = read;
        const { before: wholeBefore, after: wholeAfter, operation: was, ...wholeRest } = whole;
        assert.deepEqual(rest, wholeRest);
        assert.deepEqual(Buffer.from(smaller.key), Buffer.from(row.key));
        assert.equal(smaller.partitionHash, row.partitionHash);
        assert.equal(smaller.ordinal, row.ordinal);
        assert.equal(smaller.deletes, row.deletes);
        assert.ok(smaller.bytes < row.bytes);
        if (operation === 'OPERATION_WITHHELD') {
          withheld += 1;
          assert.equal(before, undefined);
          assert.equal(after, undefined);
          continue;
        }
        assert.equal(operation, was);
        assert.deepEqual(after, wholeAfter);
        const values = (wholeBefore as { values: unknown[] }).values;
        const left = values.map((value, at) => {
          const { keyPosition = 0, name = '' } = columns[at] ?? {};
          // a sink may name its record by both
          const names = keyPosition > 0 || (made.table.keyed.length > 0 && made.partitionBy.includes(name));
          return names ? value : ABSENT;
        });
        assert.deepEqual((before as { values: unknown[] }).values, left);
      }
      // a deletion cannot be withheld: its key says it all
      const last = steps(row).at(-1);
      if (row.deletes) assert.notEqual(last?.operation, 'withheld');
      else assert.equal(last?.operation, 'withheld');
    }),
    { numRuns: 400 },
  );
  assert.ok(withheld > 100);
});

test('our decoder reads each, and protobufjs writes each again byte for byte', () => {
  const decoder = new MessageDecoder();
  fc.assert(
    fc.property(changes, (made) => {
      for (const { payload } of steps(encodeCase(made))) {
        const message = decoder.decode(payload);
        assert.ok('schema' in message);
        assert.equal(message.schema.fingerprint, made.table.schema.fingerprint);
        assert.equal(message.lastInTransaction, made.last);
        const again = BaseMessageType.encode(BaseMessageType.decode(payload)).finish();
        assert.deepEqual(Buffer.from(again), Buffer.from(payload));
      }
    }),
    { numRuns: 400 },
  );
});
