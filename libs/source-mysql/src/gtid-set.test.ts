import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseGtidSet } from './gtid-set.ts';

const UUID = '3e11fa47-71ca-11e1-9e33-c80aa9429562';
const OTHER = '4e11fa47-71ca-11e1-9e33-c80aa9429562';

describe('GTID sets', () => {
  it('reads and prints as the servers do', () => {
    const texts = [`${UUID}:1-5:11-18,${OTHER}:1`, `${UUID}:1-3:tag_a:1:5-9`, ''];
    for (const text of texts) assert.equal(parseGtidSet('mysql', text).toString(), text);
    assert.equal(parseGtidSet('mysql', `${OTHER.toUpperCase()}:7,\n${UUID}:1`).toString(), `${UUID}:1,${OTHER}:7`);
    assert.equal(parseGtidSet('mariadb', '5-2-7,0-1-100').toString(), '0-1-100,5-2-7');
  });

  it('keeps the last transaction of each domain', () => {
    const set = parseGtidSet('mariadb', '0-1-5');
    set.add('0-2-6');
    set.add('1-1-1');
    assert.equal(set.toString(), '0-2-6,1-1-1');
  });

  it('holds exactly what was added, in whatever order, in touching-free intervals', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 60 }), (numbers) => {
        const set = parseGtidSet('mysql', '');
        for (const number of numbers) set.add(`${UUID}:${number}`);
        const held = new Set<number>();
        let end = -1;
        for (const range of set
          .toString()
          .slice(UUID.length + 1)
          .split(':')) {
          const [from = 0, to = from] = range.split('-').map(Number);
          assert.ok(from > end + 1);
          end = to;
          for (let n = from; n <= to; n += 1) held.add(n);
        }
        assert.deepEqual(held, new Set(numbers));
      }),
    );
  });
});
