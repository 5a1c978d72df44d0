/** GTID sets of MySQL against the server's own GTID_SUBSET and GTID_SUBTRACT. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { parseGtidSet } from '@mysync/core';
import fc from 'fast-check';
import { TestDatabase } from './testing.fixture.ts';

const UUIDS = ['3e11fa47-71ca-11e1-9e33-c80aa9429562', 'ffffffff-ffff-ffff-ffff-ffffffffffff'] as const;
const TAGS = ['', 'blue', '_', 'z9'] as const;
const PAIRS_A_QUESTION = 100;

describe('GTID sets of mysql', { timeout: 120_000 }, () => {
  let db: TestDatabase;
  before(async () => {
    db = await TestDatabase.create('mysql');
  });
  after(async () => {
    await db.close();
  });

  const range = fc.oneof(
    fc.tuple(fc.integer({ min: 1, max: 30 }), fc.nat({ max: 6 })).map(([from, more]) => [from, from + more] as const),
    fc.constant([9_007_199_254_740_000, 9_007_199_254_740_991] as const),
  );
  /** Text as an operator might write it: any order, overlaps, upper case, blanks. */
  const text = fc
    .array(
      fc.tuple(fc.constantFrom(...UUIDS), fc.constantFrom(...TAGS), fc.array(range, { minLength: 1, maxLength: 5 })),
      {
        maxLength: 5,
      },
    )
    .map((parts) =>
      parts
        .map(([uuid, tag, ranges]) => {
          const numbers = ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(':');
          return `${uuid.toUpperCase()}:${tag === '' ? '' : `${tag}:`}${numbers}`;
        })
        .join(',\n '),
    );

  it('subtract, contain and print as the server does', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(text, text), { minLength: PAIRS_A_QUESTION, maxLength: PAIRS_A_QUESTION }),
        async (pairs) => {
          const asked = pairs.map(
            ([a, b]) => `SELECT GTID_SUBTRACT('${a}', '${b}'), GTID_SUBTRACT('${a}', ''), GTID_SUBSET('${a}', '${b}')`,
          );
          const answers = await db.select(asked.join(' UNION ALL '));
          for (const [i, [a, b]] of pairs.entries()) {
            const [x, y] = [parseGtidSet('mysql', a), parseGtidSet('mysql', b)];
            const ours = [x.subtract(y).toString(), x.toString(), y.contains(x) ? '1' : '0'];
            const theirs = (answers[i] ?? []).map((value) => String(value).replace(/\s/g, ''));
            assert.deepEqual(ours, theirs, `${a} | ${b}`);
          }
        },
      ),
      { numRuns: 30 },
    );
  });
});
