import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolveOptions } from './options.ts';
import { spec } from './testing.ts';
import { settingsFor, weaknessesOf, weaknessesOfNew } from './topic-settings.ts';

const options = resolveOptions({ brokers: ['k1:9092'] });

test('a new topic on three brokers survives the loss of one, and on fewer it can be written at all', () => {
  const three = settingsFor(spec('t'), options, 3);
  assert.equal(three.replicationFactor, 3);
  assert.equal(three.config.get('min.insync.replicas'), '2');
  assert.equal(three.config.get('unclean.leader.election.enable'), 'false');
  assert.equal(three.config.get('cleanup.policy'), 'compact');
  const one = settingsFor(spec('t'), options, 1);
  assert.equal(one.replicationFactor, 1);
  assert.equal(one.config.get('min.insync.replicas'), '1');
  assert.equal(settingsFor(spec('t'), options, 2).config.get('min.insync.replicas'), '1');
  assert.equal(weaknessesOfNew(spec('t'), options, 3).length, 0);
  assert.equal(weaknessesOfNew(spec('t'), options, 1)[0]?.setting, 'replication.factor');
});

test('each weaker setting is named with its value and the command that mends it', () => {
  const partition = { error: 0, partition: 0, leader: 1, replicas: [1, 2], insync: [1, 2] };
  const topic = { error: 0, name: 't', id: 'x', partitions: [partition] };
  const good = new Map(settingsFor(spec('t'), options, 3).config);
  const whole = { ...topic, partitions: [{ ...partition, replicas: [1, 2, 3] }] };
  assert.deepEqual(weaknessesOf(spec('t'), options, whole, good), []);
  const bad: [string, string][] = [
    ['min.insync.replicas', '1'],
    ['unclean.leader.election.enable', 'true'],
    ['cleanup.policy', 'compact,delete'],
    ['delete.retention.ms', '86400000'],
    ['min.compaction.lag.ms', '0'],
    ['max.message.bytes', '1048588'],
    ['compression.type', 'zstd'],
  ];
  for (const [setting, value] of bad) {
    const found = weaknessesOf(spec('t'), options, whole, new Map([...good, [setting, value]]));
    assert.equal(found.length, 1, setting);
    assert.equal(found[0]?.setting, setting);
    assert.equal(found[0]?.value, value);
    assert.match(
      found[0]?.command ?? '',
      new RegExp(`^kafka-configs.sh --bootstrap-server k1:9092 --alter .*${setting}=`),
    );
  }
  assert.equal(weaknessesOf(spec('t'), options, topic, good)[0]?.setting, 'replication.factor');
});

test('a topic that is not compacted must keep records long enough, whatever their size', () => {
  const deleted = spec('t', 1, { compacted: false, retentionMs: 1000 });
  const topic = {
    error: 0,
    name: 't',
    id: 'x',
    partitions: [{ error: 0, partition: 0, leader: 1, replicas: [1, 2, 3], insync: [] }],
  };
  const good = new Map(settingsFor(deleted, options, 3).config);
  const settings = (more: [string, string][]) =>
    weaknessesOf(deleted, options, topic, new Map([...good, ...more])).map(({ setting }) => setting);
  assert.deepEqual(settings([]), []);
  assert.deepEqual(settings([['retention.ms', '-1']]), []);
  assert.deepEqual(settings([['retention.ms', '999']]), ['retention.ms']);
  assert.deepEqual(settings([['retention.bytes', '1000']]), ['retention.bytes']);
  assert.deepEqual(settings([['cleanup.policy', 'compact']]), ['cleanup.policy']);
});
