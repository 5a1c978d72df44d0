import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeCheckpoint, parseCheckpoint } from './checkpoint-codec.ts';
import { sampleCheckpoint } from './conformance.ts';
import type { Checkpoint } from './port.ts';

const PATH = '/var/lib/mysync/shop.checkpoint';
const count = fc.maxSafeNat();
const word = fc.string({ unit: 'binary' });
const change = fc.record({ file: word, offset: count, gtid: word, ordinal: count });
const partition = fc.record({
  epoch: count,
  generation: count,
  sequence: count,
  offset: fc.integer({ min: -1, max: Number.MAX_SAFE_INTEGER }),
  change,
});
const checkpoint: fc.Arbitrary<Checkpoint> = fc.array(partition).chain((partitions) =>
  fc.record({
    source: word,
    position: fc.record({ file: word, offset: count, gtidSet: word }),
    serverUuid: word,
    transactionCounter: count,
    epoch: count,
    producer: fc.option(fc.record({ id: word, epoch: count })),
    topic: fc.record({ name: word, id: word, partitions: fc.constant(partitions.length) }),
    configFingerprint: word,
    partitions: fc.constant(partitions),
    snapshot: fc.record(
      {
        state: fc.constantFrom('none' as const, 'running' as const, 'done' as const),
        completeTables: fc.array(word),
        wantedTables: fc.array(fc.record({ database: word, table: word })),
        knownTables: fc.array(fc.record({ database: word, table: word })),
      },
      { requiredKeys: ['state', 'completeTables'] },
    ),
    schemaHistory: fc.option(fc.record({ id: word, sequence: count })),
    savedAt: word,
  }),
);

function refused(text: string, why: RegExp): void {
  assert.throws(
    () => parseCheckpoint(text, PATH),
    (error: Error & { code: string; where: unknown; remedy: string }) => {
      assert.equal(error.code, 'CHECKPOINT_INVALID');
      assert.match(error.message, why);
      assert.deepEqual(error.where, { path: PATH });
      assert.match(error.remedy, /backup/);
      return true;
    },
  );
}

/** A text whose header is right for a body that is not. */
function sealed(body: unknown): string {
  const content = JSON.stringify(body);
  const sha256 = createHash('sha256').update(content).digest('hex');
  const bytes = Buffer.byteLength(content);
  return `${JSON.stringify({ format: 'mysync-checkpoint', version: 1, bytes, sha256 })}\n${content}\n`;
}

test('any checkpoint comes back as it was', () => {
  fc.assert(
    fc.property(checkpoint, (value) => {
      assert.deepEqual(parseCheckpoint(encodeCheckpoint(value), PATH), JSON.parse(JSON.stringify(value)));
    }),
  );
});

test('a checkpoint from before there was a schema history goes with none', () => {
  const { schemaHistory: _, ...before } = sampleCheckpoint();
  assert.equal(parseCheckpoint(sealed(before), PATH).schemaHistory, null);
});

test('every truncation is refused', () => {
  const text = encodeCheckpoint(sampleCheckpoint());
  for (let length = 0; length < text.length; length++) refused(text.slice(0, length), /./);
});

test('every change of a byte is refused', () => {
  const bytes = Buffer.from(encodeCheckpoint(sampleCheckpoint()));
  for (let i = 0; i < bytes.length; i++) {
    const changed = Buffer.from(bytes);
    changed[i] = (changed[i] as number) ^ 1;
    refused(changed.toString(), /./);
  }
});

test('says what is wrong', () => {
  const good = sampleCheckpoint();
  refused('', /empty/);
  refused('[mysqld]\nserver-id=1\n', /header is not JSON/);
  refused('{"a":1}\n', /header has no format/);
  refused('{"format":"other","version":1,"bytes":0,"sha256":""}\n\n', /format is "other"/);
  refused('{"format":"mysync-checkpoint","version":2,"bytes":0,"sha256":""}\n\n', /version is 2; .*reads version 1/);
  refused(`${encodeCheckpoint(good)}x`, /truncated or extended/);
  refused(encodeCheckpoint(good).replace('"epoch":1', '"epoch":2'), /checksum/);
  refused(sealed([]), /not an object/);
  refused(sealed({ ...good, epoch: undefined }), /has no epoch/);
  refused(sealed({ ...good, extra: 1 }), /unknown field "extra"/);
  refused(sealed({ ...good, epoch: 1.5 }), /epoch is 1\.5/);
  refused(sealed({ ...good, epoch: -1 }), /epoch is -1/);
  refused(sealed({ ...good, source: 7 }), /source is not text/);
  refused(sealed({ ...good, partitions: {} }), /partitions is not a list/);
  refused(sealed({ ...good, partitions: good.partitions.slice(1) }), /1 partitions of a topic that has 2/);
  refused(sealed({ ...good, snapshot: { state: 'maybe', completeTables: [] } }), /snapshot\.state is "maybe"/);
  const wanting = { state: 'done', completeTables: [], wantedTables: [{ database: 'shop' }] };
  refused(sealed({ ...good, snapshot: wanting }), /snapshot\.wantedTables\.0 has no table/);
});
