import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import fc from 'fast-check';
import { rowOf, table, transaction } from './arbitraries.fixture.ts';
import { ByteReader } from './byte-reader.ts';
import { compileTable, encodeTableMessage, encodeTransaction, MessageDecoder, RowEncoder } from './index.ts';
import { BaseMessageType, encodePlain, plainSchema, TableSchemaType } from './protobufjs-codec.fixture.ts';
import { SchemaDecoder } from './schema-decoder.ts';

const encoder = new RowEncoder();
const messages = fc
  .tuple(
    table.chain((made) => fc.tuple(fc.constant(made), rowOf(made))),
    transaction,
    fc.boolean(),
  )
  .map(([[made, values], options, row]) => {
    const block = encodeTransaction(options);
    if (!row) {
      const ref = { database: 'd', table: 't' };
      return encodeTableMessage({ operation: 'ddl', transaction: block, ordinal: 1, table: ref, statement: 'ALTER' })
        .payload;
    }
    const change = { eventFile: '', eventOffset: 77, ordinal: 1, before: null, after: values };
    return encoder.encode(compileTable({ schema: made.schema }), block, { operation: 'insert', ...change }).payload;
  });

/** Decodes, or fails with the one error that names a byte of the payload. */
function survives(payload: Uint8Array, decoder = new MessageDecoder()): boolean {
  try {
    decoder.decode(payload);
    return true;
  } catch (error) {
    assert.ok(isMysyncError(error, 'WIRE_MESSAGE_INVALID'), String(error));
    const byte = error.where['byte'];
    assert.ok(typeof byte === 'number' && byte >= 0 && byte <= payload.length, String(byte));
    return false;
  }
}

test('a message cut off anywhere is refused', () => {
  fc.assert(
    fc.property(messages, (payload) => {
      const step = Math.max(1, Math.floor(payload.length / 2000));
      for (let length = 0; length < payload.length; length += step) {
        assert.ok(!survives(payload.subarray(0, length)), `${length} of ${payload.length}`);
      }
      for (const less of [1, 2, 3]) assert.ok(!survives(payload.subarray(0, payload.length - less)));
    }),
    { numRuns: 40 },
  );
});

test('damaged messages are decoded or refused, and nothing else happens', () => {
  const edits = fc.array(fc.tuple(fc.nat(), fc.oneof(fc.nat({ max: 255 }), fc.constantFrom(0x80, 0xff, 0x7f, 0))), {
    minLength: 1,
    maxLength: 4,
  });
  let refused = 0;
  fc.assert(
    fc.property(messages, edits, fc.nat({ max: 12 }), (payload, list, inserted) => {
      const damaged = Uint8Array.from([
        ...payload.subarray(0, 39),
        ...new Uint8Array(inserted),
        ...payload.subarray(39),
      ]);
      for (const [at, byte] of list) damaged[at % damaged.length] = byte;
      if (!survives(damaged)) refused++;
    }),
    { numRuns: 4000 },
  );
  assert.ok(refused > 1000, String(refused));
});

test('every single bit may flip', () => {
  const decoder = new MessageDecoder();
  fc.assert(
    fc.property(messages, (payload) => {
      if (payload.length > 3000) return;
      survives(payload, decoder);
      for (let bit = 0; bit < payload.length * 8; bit++) {
        const damaged = Uint8Array.from(payload);
        damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        survives(damaged, decoder);
      }
      assert.ok(survives(payload, decoder), 'a damaged message spoils nothing for the next');
    }),
    { numRuns: 15 },
  );
});

test('random bytes behind a right head are refused or read', () => {
  const head = encodeTableMessage({
    operation: 'sweep',
    transaction: encodeTransaction({
      source: 's',
      serverUuid: '',
      id: { file: '', offset: 0, gtid: '', ordinal: 0 },
      commitTimeMicros: 0,
    }),
    ordinal: 0,
    table: { database: 'd', table: 't' },
    statement: '',
  }).payload.subarray(0, 39);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (tail) => {
      survives(Buffer.concat([head, tail]));
    }),
    { numRuns: 5000 },
  );
  const heartbeat = '10081a020a007800';
  assert.ok(survives(Buffer.concat([head, Buffer.from(heartbeat, 'hex')])));
  assert.ok(survives(Buffer.concat([head, Buffer.from(`${heartbeat}f804ffffffffffffffffff01`, 'hex')])));
  const behind = {
    ffffffffffffffffff0100: 'a tag of 64 bits',
    f804ffffffffffffffffffff01: 'a number of eleven bytes',
    f804ffffffffffffffffff02: 'a number of 65 bits',
    fa04ffffffffffffffffff01: 'a length of 2^64',
    fa04ffffffff7f: 'a length of 32 GiB',
    fa0401: 'a length one too long',
    fd04000000: 'a fixed number cut off',
    f90400000000000000: 'a fixed number cut off',
    fb04: 'the start of a group',
    fc04: 'the end of a group',
    ff04: 'a wire type that does not exist',
    '0001': 'a field of the number 0',
    '1a020a00': 'a second source',
    '0a00': 'a second delivery',
    '3202': 'a row cut off',
  };
  const instead = {
    '107f1a020a007800': 'an unknown operation',
    '10087800': 'no source',
    '10081a007800': 'no transaction',
    '10081a040a000a007800': 'two transactions',
    '10081a040a001080017800': 'a number that reaches beyond its sub-message',
    '10081a0d0a0010ffffffffffffffffff017800': 'an offset of 2^64 - 1',
    '10081a0b0a001080808080808080107800': 'an offset of 2^53',
    '10051a020a007800': 'a sweep without a table',
    '10051a020a003a003a007800': 'two tables',
    '10011a020a0032007800': 'a row without a schema',
    '10051a020a003a00': 'a sweep without its end',
  };
  for (const [tail, why] of Object.entries(behind)) {
    assert.ok(!survives(Buffer.concat([head, Buffer.from(heartbeat + tail, 'hex')])), why);
  }
  for (const [tail, why] of Object.entries(instead)) {
    assert.ok(!survives(Buffer.concat([head, Buffer.from(tail, 'hex')])), why);
  }
});

const good = {
  delivery: { epoch: 1, generation: 1, base: 1, sequence: 1, version: 1 },
  operation: 'OPERATION_INSERT',
  source: { transaction: { source: 's' } },
  lastInTransaction: false,
};
const columns = [
  { name: 'id', type: 'int', kind: 'int' as const, keyPosition: 1, nullable: false, charset: '', members: [] },
  { name: 'b', type: 'text', kind: 'text' as const, keyPosition: 0, nullable: true, charset: '', members: [] },
];
const schema = { database: 'd', table: 't', columns, keyRule: 'primary' as const, fingerprint: '' };

test('rows that do not fit their table are refused', () => {
  const bare = plainSchema(schema);
  const row = { values: [{ int: '1' }, { text: 'x' }] };
  assert.ok(survives(encodePlain(BaseMessageType, { ...good, schema: bare, after: row })));
  const bad: Record<string, Record<string, unknown>> = {
    'a value too few': { schema: bare, after: { values: [{ int: '1' }] } },
    'a value too many': { schema: bare, after: { values: [{ int: '1' }, {}, {}] } },
    'a value of another kind': { schema: bare, after: { values: [{ int: '1' }, { bytes: Buffer.from('x') }] } },
    'an integer of the other sign': { schema: bare, after: { values: [{ uint: '1' }, {}] } },
    'a NULL that is not true': { schema: bare, after: { values: [{ int: '1' }, { null: false }] } },
    'an insert with an image before': { schema: bare, after: row, before: row },
    'an insert without an image after': { schema: bare },
    'an update without an image before': { operation: 'OPERATION_UPDATE', schema: bare, after: row },
    'a delete with an image after': { operation: 'OPERATION_DELETE', schema: bare, before: row, after: row },
    'a row without a schema': { after: row },
    'a schema without a fingerprint': { schema: { ...bare, fingerprint: undefined }, after: row },
    'a schema with a fingerprint of another': { schema: { ...bare, fingerprint: '5' }, after: row },
    'two columns of one name': {
      schema: plainSchema({ ...schema, columns: [columns[0] ?? columns[1], columns[0]] as typeof columns }),
      after: row,
    },
    'no columns': { schema: plainSchema({ ...schema, columns: [] }), after: { values: [] } },
    'a key rule without key columns': { schema: plainSchema({ ...schema, columns: columns.slice(1) }), after: row },
    'no operation': { operation: 'OPERATION_UNSPECIFIED', schema: bare, after: row },
  };
  for (const [why, parts] of Object.entries(bad)) {
    assert.ok(!survives(encodePlain(BaseMessageType, { ...good, ...parts })), why);
  }
});

test('text that is not UTF-8 is refused; the replacement character is text', () => {
  const bare = plainSchema(schema);
  const payload = Buffer.from(
    encodePlain(BaseMessageType, { ...good, schema: bare, after: { values: [{ int: '1' }, { text: 'x\ufffdMARK' }] } }),
  );
  assert.ok(survives(payload));
  const at = payload.indexOf('MARK');
  for (const bytes of ['c328', 'ff', 'eda080', 'f8888080', 'c080']) {
    const damaged = Buffer.from(payload);
    Buffer.from(bytes, 'hex').copy(damaged, at);
    assert.ok(!survives(damaged), bytes);
  }
  const single = encodePlain(BaseMessageType, {
    ...good,
    schema: bare,
    after: { values: [{ int: '1' }, { text: '~' }] },
  });
  single[single.lastIndexOf(0x7e)] = 0xff;
  assert.ok(!survives(single));
});

test('the schemas kept are bounded, and a forgotten one is read again', () => {
  const schemas = new SchemaDecoder();
  const reader = new ByteReader();
  const blocks = Array.from({ length: 3000 }, (_, i) => {
    const bare = plainSchema({ ...schema, table: `t${i}` });
    return encodePlain(TableSchemaType, bare);
  });
  for (const round of [0, 1]) {
    for (const [i, block] of blocks.entries()) {
      reader.open(block);
      assert.equal(schemas.decode(reader, block.length).schema.table, `t${i}`, `round ${round}`);
      assert.ok(schemas.size <= 1024);
    }
  }
});
