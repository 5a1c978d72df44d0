import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { isMysyncError } from './errors.ts';
import { parseGtidSet } from './gtid-set.ts';

const UUID = '3e11fa47-71ca-11e1-9e33-c80aa9429562';
const OTHER = '4e11fa47-71ca-11e1-9e33-c80aa9429562';
const KEYS = [UUID, `${UUID}:blue`, OTHER] as const;

describe('GTID sets of MySQL', () => {
  it('read and print as the server does', () => {
    const texts = [`${UUID}:1-5:11-18,${OTHER}:1`, `${UUID}:1-3:tag_a:1:5-9`, ''];
    for (const text of texts) assert.equal(parseGtidSet('mysql', text).toString(), text);
    assert.equal(parseGtidSet('mysql', `${OTHER.toUpperCase()}:7,\n${UUID}:1`).toString(), `${UUID}:1,${OTHER}:7`);
    assert.equal(parseGtidSet('mysql', `${UUID}:4:1-3:TAG:5`).toString(), `${UUID}:1-4:tag:5`);
  });

  it('refuse what is none', () => {
    const wrong = ['x', UUID, `${UUID}:`, `${UUID}:0`, `${UUID}:5-3`, `${UUID}:1-2-3`, `${UUID}:1x`, `${UUID}:9tag:1`];
    wrong.push(`${UUID}:${2n ** 53n}`, '0-1-5', `${UUID}:${'t'.repeat(33)}:1`);
    for (const text of wrong) {
      const refused = (error: unknown): boolean => isMysyncError(error, 'POSITION_INVALID');
      assert.throws(() => parseGtidSet('mysql', text), refused, text);
    }
    assert.throws(() => parseGtidSet('mysql', '').add(`${UUID}:a:b:1`), /not a GTID set/);
    assert.throws(
      () => parseGtidSet('mysql', '').contains(parseGtidSet('mariadb', '0-1-1')),
      /not a GTID set of MySQL/,
    );
  });

  // the oracle: sets of single transactions
  type Numbers = ReadonlySet<string>;
  const numbers = fc
    .array(fc.tuple(fc.constantFrom(...KEYS), fc.integer({ min: 1, max: 24 })), { maxLength: 60 })
    .map((list) => new Set(list.map(([key, number]) => `${key}:${number}`)) as Numbers);
  const setOf = (list: Numbers) => {
    const set = parseGtidSet('mysql', '');
    for (const gtid of list) {
      set.add(gtid);
      // what is kept of one text for the next one must not show
      set.toString();
    }
    return set;
  };
  const held = (text: string): Numbers => {
    const found = new Set<string>();
    for (const part of text === '' ? [] : text.split(',')) {
      const [uuid = '', ...fields] = part.split(':');
      let key = uuid;
      let end = -1;
      for (const field of fields) {
        if (!/^\d/.test(field)) {
          key = `${uuid}:${field}`;
          end = -1;
          continue;
        }
        const [from = 0, to = from] = field.split('-').map(Number);
        assert.ok(from > end + 1, `${text}: intervals that touch`);
        end = to;
        for (let n = from; n <= to; n += 1) found.add(`${key}:${n}`);
      }
    }
    return found;
  };

  it('hold exactly what was added, in whatever order, and compare, join and subtract as sets do', () => {
    fc.assert(
      fc.property(numbers, numbers, (a, b) => {
        const [x, y] = [setOf(a), setOf(b)];
        assert.deepEqual(held(x.toString()), a);
        assert.equal(parseGtidSet('mysql', x.toString()).toString(), x.toString());
        assert.deepEqual(held(x.union(y).toString()), new Set([...a, ...b]));
        assert.deepEqual(held(x.subtract(y).toString()), new Set([...a].filter((gtid) => !b.has(gtid))));
        assert.equal(
          x.contains(y),
          [...b].every((gtid) => a.has(gtid)),
        );
        assert.equal(x.equals(y), x.toString() === y.toString());
        assert.equal(x.isEmpty, a.size === 0);
        for (const gtid of b) assert.equal(x.has(gtid), a.has(gtid));
        assert.deepEqual(held(x.toString()), a, 'nothing changed the set');
      }),
      { numRuns: 500 },
    );
  });
});

describe('GTID sets of MariaDB', () => {
  it('read and print as the server does', () => {
    assert.equal(parseGtidSet('mariadb', '5-2-7,0-1-100').toString(), '0-1-100,5-2-7');
    for (const text of ['x', '0-1', '0-1-', '0:1:1', `${UUID}:1`, '0-1-1-1']) {
      assert.throws(
        () => parseGtidSet('mariadb', text),
        (error) => isMysyncError(error, 'POSITION_INVALID'),
        text,
      );
    }
  });

  it('keep the last transaction of each domain, and compare by it', () => {
    const set = parseGtidSet('mariadb', '0-1-5');
    set.add('0-2-6');
    set.add('1-1-1');
    assert.equal(set.toString(), '0-2-6,1-1-1');
    const of = (text: string) => parseGtidSet('mariadb', text);
    assert.ok(
      set.contains(of('0-1-6')) && set.contains(of('')) && !set.contains(of('0-2-7')) && !set.contains(of('2-1-1')),
    );
    assert.ok(set.has('0-9-3') && !set.has('0-2-7') && !set.has('3-1-1'));
    assert.equal(set.union(of('0-3-9,2-1-1')).toString(), '0-3-9,1-1-1,2-1-1');
    assert.equal(set.subtract(of('0-3-9')).toString(), '1-1-1');
    assert.equal(set.subtract(of('0-1-5,1-1-1')).toString(), '0-2-6');
    assert.ok(!set.equals(of('0-1-6,1-1-1')) && set.equals(of('1-1-1,0-2-6')));
    assert.ok(of('0-1-18446744073709551615').contains(of('0-1-18446744073709551614')));
  });
});
