/** Checkpoints against topic and server: the codes are those of a start. Needs no server. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Checkpoint } from '@mysync/checkpoint';
import type { TopicDescription } from '@mysync/transport';
import { LogTransport } from '@mysync/transport-log';
import { topicFindings } from './check-start.ts';

const folder = mkdtempSync(join(tmpdir(), 'mysync-start-'));
const change = { file: '', offset: 0, gtid: '', ordinal: 0 };
let transport: LogTransport;
let topic: TopicDescription;

before(async () => {
  transport = await LogTransport.open({ path: folder, maintenance: false });
  topic = await transport.ensureTopic({
    name: 'shop',
    partitions: 1,
    compacted: false,
    deleteRetentionMs: 1,
    minCompactionLagMs: 0,
    retentionMs: -1,
    allowWeaker: false,
  });
});

after(async () => {
  await transport.close();
  rmSync(folder, { recursive: true });
});

function checkpoint(fields: Partial<Checkpoint>): Checkpoint {
  return {
    source: 'shop',
    position: { file: 'binlog.000001', offset: 4, gtidSet: '' },
    serverUuid: 'one',
    transactionCounter: 1,
    epoch: 1,
    producer: null,
    topic: { name: topic.name, id: topic.id, partitions: topic.partitions },
    configFingerprint: '',
    partitions: [{ epoch: 1, generation: 0, sequence: 0, offset: -1, change }],
    snapshot: { state: 'done', completeTables: [] },
    schemaHistory: null,
    savedAt: '',
    ...fields,
  };
}

async function codes(loaded: Checkpoint | null, serverUuid: string | null, name = 'shop'): Promise<string[]> {
  const findings = await topicFindings(transport, 'shop', name, { loaded, serverUuid });
  return findings.filter(({ level }) => level === 'error').map(({ code }) => code);
}

test('what belongs together has no errors', async () => {
  assert.deepEqual(await codes(null, 'one'), []);
  assert.deepEqual(await codes(null, 'one', 'none'), []);
  assert.deepEqual(await codes(checkpoint({}), 'one'), []);
  assert.deepEqual(await codes(checkpoint({}), null), []);
});

test('another server, another topic, no topic', async () => {
  assert.deepEqual(await codes(checkpoint({}), 'two'), ['READER_SERVER_CHANGED']);
  const other = { name: topic.name, id: 'other', partitions: 1 };
  assert.deepEqual(await codes(checkpoint({ topic: other }), 'two'), ['READER_TOPIC_CHANGED', 'READER_SERVER_CHANGED']);
  assert.deepEqual(await codes(checkpoint({}), 'one', 'none'), ['READER_TOPIC_CHANGED']);
});

test('messages without a checkpoint', async () => {
  const signal = AbortSignal.timeout(10_000);
  const record = { key: new Uint8Array([1]), value: new Uint8Array([1]), headers: [] };
  const publisher = await transport.openPublisher({
    topic: 'shop',
    producer: 'test',
    previous: null,
    fenceRecord: () => record,
    signal,
  });
  await publisher.publish(0, [record]);
  await publisher.close(0);
  assert.deepEqual(await codes(null, 'one'), ['READER_LOG_WITHOUT_CHECKPOINT']);
});
