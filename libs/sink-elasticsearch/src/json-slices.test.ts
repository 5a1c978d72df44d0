import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { arrayElements, objectMembers } from './json-slices.ts';

test('members keep their text', () => {
  const members = objectMembers(
    ' {"a" : 18446744073709551615, "b\\"{":"x}\\"]\\\\" ,"c":{"d":[1,{"e":"}"}]},"f":[],"g":null}',
  );
  assert.deepEqual(Object.fromEntries(members), {
    a: '18446744073709551615',
    'b"{': '"x}\\"]\\\\"',
    c: '{"d":[1,{"e":"}"}]}',
    f: '[]',
    g: 'null',
  });
  assert.deepEqual(arrayElements('[1, {"a":[2]} ,"]"]'), ['1', '{"a":[2]}', '"]"']);
  assert.deepEqual(arrayElements('[]'), []);
  assert.equal(objectMembers('{}').size, 0);
});

test('property: cut and put together again, a document is the same', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.boolean(), (value, pretty) => {
      const text = JSON.stringify(value, null, pretty ? 2 : 0);
      const again = [...objectMembers(text)].map(([name, member]) => `${JSON.stringify(name)}:${member}`).join(',');
      assert.deepEqual(JSON.parse(`{${again}}`), JSON.parse(text));
    }),
  );
});

test('text that breaks off is an error', () => {
  for (const text of ['', '{', '{"a"', '{"a":', '{"a":1', '{"a":"x', '{"a":[1}', '{"a":1 "b":2}', '{"a":}']) {
    assert.throws(() => objectMembers(text), SyntaxError, text);
  }
});
