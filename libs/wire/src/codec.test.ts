import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { plain } from './arbitraries.fixture.ts';
import { type Case, changes, encodeCase } from './cases.fixture.ts';
import { encodeControl, encodeTableMessage, encodeTransaction, MessageDecoder } from './index.ts';
import {
  BaseMessageType,
  encodePlain,
  PROTO_FILE,
  plainRow,
  plainSchema,
  toPlain,
} from './protobufjs-codec.fixture.ts';

const RUNS = { numRuns: 400 };

const decoder = new MessageDecoder();

function sourceOf(made: Case): Record<string, unknown> {
  const { id, ...rest } = made.transaction;
  const parts = {
    source: rest.source,
    serverUuid: rest.serverUuid,
    gtid: id.gtid,
    file: id.file,
    offset: String(id.offset),
    commitTimeMicros: String(rest.commitTimeMicros),
  };
  const file = made.eventFile === id.file ? '' : made.eventFile;
  return {
    transaction: parts,
    eventOffset: String(made.eventOffset),
    ...(file === '' ? {} : { eventFile: file }),
    ordinal: String(made.ordinal),
  };
}

/** Drops what proto3 does not send: empty texts and zeros of the transaction, columns' defaults. */
const sent = (plainObject: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(plainObject).filter(
      ([, value]) =>
        value !== '' &&
        value !== '0' &&
        value !== 0 &&
        value !== false &&
        !(Array.isArray(value) && value.length === 0),
    ),
  );

test('protobufjs reads from our bytes what was put in', () => {
  fc.assert(
    fc.property(changes, (made) => {
      const { schema } = made.table;
      const read = toPlain(encodeCase(made).payload);
      const source = sourceOf(made);
      const wanted: Record<string, unknown> = {
        delivery: {
          epoch: 2 ** 32 - 1,
          generation: 7,
          base: '9007199254740991',
          sequence: '5',
          version: String(3 * 2 ** 20 + 9),
        },
        operation: `OPERATION_${made.operation.toUpperCase()}`,
        source: { ...sent(source), transaction: sent(source['transaction'] as Record<string, unknown>) },
        lastInTransaction: made.last,
      };
      const bare = plainSchema(schema);
      wanted['schema'] = {
        ...sent(bare),
        fingerprint: BigInt(`0x${schema.fingerprint}`).toString(),
        columns: (bare['columns'] as Record<string, unknown>[]).map(sent),
      };
      for (const image of ['before', 'after'] as const) {
        const values = made[image];
        if (values === null) continue;
        const row = plainRow(schema, values);
        wanted[image] = {
          values: (row['values'] as Record<string, unknown>[]).map((value) =>
            value['bytes'] instanceof Uint8Array ? { bytes: Buffer.from(value['bytes']) } : value,
          ),
        };
      }
      assert.deepEqual(read, wanted);
    }),
    RUNS,
  );
});

test('protobufjs writes our bytes again, byte for byte', () => {
  fc.assert(
    fc.property(changes, (made) => {
      const { payload } = encodeCase(made);
      const again = BaseMessageType.encode(BaseMessageType.decode(payload)).finish();
      assert.deepEqual(Buffer.from(again), Buffer.from(payload));
    }),
    RUNS,
  );
});

test('we read from our bytes, and from those of protobufjs, what was put in', () => {
  fc.assert(
    fc.property(changes, (made) => {
      const { schema } = made.table;
      const bare = plainSchema(schema);
      const theirs = encodePlain(BaseMessageType, {
        delivery: { epoch: 2 ** 32 - 1, generation: 7, base: '9007199254740991', sequence: '5', version: '3145737' },
        operation: `OPERATION_${made.operation.toUpperCase()}`,
        source: sourceOf(made),
        schema: bare,
        ...(made.before === null ? {} : { before: plainRow(schema, made.before) }),
        ...(made.after === null ? {} : { after: plainRow(schema, made.after) }),
        lastInTransaction: made.last,
      });
      const { id, source: name, serverUuid, commitTimeMicros } = made.transaction;
      const wanted = {
        operation: made.operation,
        delivery: { epoch: 2 ** 32 - 1, generation: 7, base: 2 ** 53 - 1, sequence: 5, version: 3145737n },
        source: {
          name,
          serverUuid,
          commitTimeMicros,
          change: { ...id, ordinal: made.ordinal },
          eventFile: made.eventFile === '' ? id.file : made.eventFile,
          eventOffset: made.eventOffset,
        },
        lastInTransaction: made.last,
        schema,
        before: made.before?.map(plain) ?? null,
        after: made.after?.map(plain) ?? null,
      };
      for (const payload of [encodeCase(made).payload, theirs]) {
        const read = decoder.decode(payload);
        assert.ok('schema' in read);
        const fingerprint = payload === theirs ? read.schema.fingerprint : schema.fingerprint;
        assert.deepStrictEqual(
          { ...read, before: read.before?.map(plain) ?? null, after: read.after?.map(plain) ?? null },
          { ...wanted, schema: { ...schema, fingerprint } },
        );
      }
    }),
    RUNS,
  );
});

const tx = encodeTransaction({
  source: 'shop',
  serverUuid: 'uuid',
  id: { file: 'binlog.000007', offset: 4, gtid: '0-1-9', ordinal: 0 },
  commitTimeMicros: 1_700_000_000_000_001,
});

test('changes of tables, heartbeats and fences go both ways', () => {
  const ref = { database: 'my-db.v1', table: '表' };
  for (const operation of ['truncate', 'ddl', 'sweep'] as const) {
    const statement = operation === 'sweep' ? '' : `TRUNCATE /* ${'x'.repeat(200)} é */ 表`;
    const { payload } = encodeTableMessage({
      operation,
      transaction: tx,
      ordinal: 3,
      table: ref,
      statement,
      eventFile: 'binlog.000008',
      eventOffset: 99,
    });
    const read = decoder.decode(payload);
    assert.ok('table' in read);
    assert.deepStrictEqual([read.operation, read.table, read.statement], [operation, ref, statement]);
    assert.deepStrictEqual([read.source.eventFile, read.source.eventOffset], ['binlog.000008', 99]);
    const theirs = toPlain(payload);
    assert.equal(theirs['operation'], `OPERATION_${operation.toUpperCase()}`);
    assert.deepEqual(theirs['table'], ref);
    assert.equal(theirs['statement'] ?? '', statement);
    assert.deepEqual(Buffer.from(encodePlain(BaseMessageType, theirs)), Buffer.from(payload));
  }
  for (const operation of ['heartbeat', 'fence'] as const) {
    const { payload } = encodeControl({ operation, transaction: tx, ordinal: 12 });
    const read = decoder.decode(payload);
    assert.equal(read.operation, operation);
    assert.deepStrictEqual(read.source.change, { file: 'binlog.000007', offset: 4, gtid: '0-1-9', ordinal: 12 });
    assert.equal(toPlain(payload)['operation'], `OPERATION_${operation.toUpperCase()}`);
  }
});

test('a message of a later version, with fields that we do not know, is read', () => {
  const later = protobuf.loadSync(PROTO_FILE);
  const add = (type: string, field: string, id: number, fieldType: string): void => {
    later.lookupType(`mysync.v1.${type}`).add(new protobuf.Field(field, id, fieldType));
  };
  for (const type of ['BaseMessage', 'Source', 'Transaction', 'TableSchema', 'Column', 'Row']) {
    add(type, 'laterText', 70, 'string');
    add(type, 'laterNumber', 71, 'fixed64');
    add(type, 'laterHalf', 72, 'fixed32');
    add(type, 'laterVarint', 73, 'uint64');
  }
  add('Delivery', 'laterNumber', 6, 'fixed64');
  const extra = { laterText: 'x'.repeat(200), laterNumber: '1', laterHalf: 2, laterVarint: '18446744073709551615' };
  const type = later.lookupType('mysync.v1.BaseMessage');
  const columns = [{ name: 'id', type: 'int', kind: 'int', keyPosition: 1, nullable: false, charset: '', members: [] }];
  const bare = {
    database: 'd',
    table: 't',
    columns: columns.map((column) => ({ ...column, kind: 'COLUMN_KIND_INT', ...extra })),
    keyRule: 'KEY_RULE_PRIMARY',
    ...extra,
  };
  const schemaType = later.lookupType('mysync.v1.TableSchema');
  const digest = createHash('sha256').update(encodePlain(schemaType, bare)).digest();
  const fingerprint = digest.readBigUInt64BE(0).toString();
  const payload = encodePlain(type, {
    delivery: { epoch: 1, generation: 2, base: 3, sequence: 4, version: 5, laterNumber: 6 },
    operation: 'OPERATION_INSERT',
    source: { transaction: { source: 's', ...extra }, ordinal: 1, ...extra },
    schema: { ...bare, fingerprint },
    after: { values: [{ int: '-5' }], ...extra },
    lastInTransaction: true,
    ...extra,
  });
  const read = decoder.decode(payload);
  assert.ok('after' in read);
  assert.deepStrictEqual([read.delivery.version, read.after, read.source.name], [5n, [-5], 's']);
  assert.deepStrictEqual(read.schema.columns, columns);
  assert.equal(read.lastInTransaction, true);
});
