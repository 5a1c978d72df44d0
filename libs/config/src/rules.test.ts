import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MysyncError } from '@mysync/core';
import { configFingerprint, loadConfig } from './index.ts';

interface Raw {
  sources: Record<string, Record<string, unknown>>;
  sinks: Record<string, Record<string, unknown>>;
  transport: Record<string, unknown>;
  checkpoint?: Record<string, unknown>;
}

function base(): Raw {
  return {
    sources: { shop: { hosts: ['db:3306'], user: 'u', tables: ['shop.*'] } },
    sinks: { cache: { kind: 'redis', hosts: ['r:6379'], tables: [{ match: ['shop.*'] }] } },
    transport: {},
  };
}

function load(change: (raw: Raw) => void) {
  const raw = base();
  change(raw);
  return loadConfig({ text: JSON.stringify(raw), path: 'mysync.yaml', environment: {} });
}

function conflict(change: (raw: Raw) => void): MysyncError {
  const result = load(change);
  assert.ok(!result.ok, 'the configuration was accepted');
  assert.equal(result.problems.length, 1, result.problems.map(String).join('\n'));
  return result.problems[0] as MysyncError;
}

test('the base is valid', () => {
  const result = load(() => undefined);
  assert.ok(result.ok, result.ok ? '' : result.problems.map(String).join('\n'));
  assert.deepEqual(result.warnings, []);
});

const CONFLICTS: readonly (readonly [string, RegExp, (raw: Raw) => void])[] = [
  ['kafka without brokers', /transport\.kafka\.brokers is missing/, (raw) => (raw.transport = { kind: 'kafka' })],
  [
    'more replicas in sync than there are',
    /minInsyncReplicas: 3 replicas .* but there are 2/,
    (raw) =>
      (raw.transport = { kind: 'kafka', kafka: { brokers: ['a:1'], replicationFactor: 2, minInsyncReplicas: 3 } }),
  ],
  [
    'a checkpoint in MySQL without a server',
    /checkpoint\.mysql is missing/,
    (raw) => (raw.checkpoint = { kind: 'mysql' }),
  ],
  [
    'a source whose topic is that of a checkpoint',
    /topic 'shop-checkpoint' of its checkpoint is the topic of source 'other'/,
    (raw) => {
      raw.checkpoint = { kind: 'topic' };
      raw.sources['other'] = { ...raw.sources['shop'], topic: 'shop-checkpoint' };
    },
  ],
  [
    'deletions forgotten too soon',
    /deleteRetentionMs: 1000 is less than 7 days/,
    (raw) => (raw.transport = { deleteRetentionMs: 1000 }),
  ],
  [
    'an index of markers whose name can be none',
    /sinks\.search\.markerIndex: '_Markers' can be no name of an index/,
    (raw) => {
      const tables = [{ match: '*.*', index: '{database}-{table}' }];
      raw.sinks['search'] = { kind: 'elasticsearch', nodes: ['http://h:9200'], tables, markerIndex: '_Markers' };
    },
  ],
  [
    'a sink of an unknown source',
    /no source 'shp' \(did you mean shop\?\)/,
    (raw) => (raw.sinks['cache']!['sources'] = ['shp']),
  ],
  [
    'two sources with one topic',
    /topic 'shop' is that of source 'shop'/,
    (raw) => {
      raw.sources['other'] = { ...raw.sources['shop'], topic: 'shop' };
      raw.sinks['cache']!['sources'] = ['shop'];
    },
  ],
  [
    'two names that differ in case alone',
    /differs from 'cache' only in case/,
    (raw) => (raw.sinks['CACHE'] = { ...raw.sinks['cache'], prefix: 'p' }),
  ],
  [
    'two sinks with one place',
    /shares server, database and prefix with sink 'cache'/,
    (raw) => (raw.sinks['other'] = { ...raw.sinks['cache'] }),
  ],
  ['redis without a server', /names no server/, (raw) => delete raw.sinks['cache']!['hosts']],
  ['redis with url and hosts', /has both hosts and url/, (raw) => (raw.sinks['cache']!['url'] = 'redis://r:1')],
  [
    'a database in a cluster',
    /a cluster has only database 0/,
    (raw) => Object.assign(raw.sinks['cache']!, { cluster: true, db: 1 }),
  ],
  [
    'a span that is applied again and outlasts the deletions',
    /may be older than the deletions/,
    (raw) => Object.assign(raw.sinks['cache']!, { cluster: true, failoverReplayMs: 50_000, deletedTtlSeconds: 100 }),
  ],
  [
    'a sorted set without a score',
    /a sorted set needs a score/,
    (raw) => (raw.sinks['cache']!['tables'] = [{ match: 'a.b', indexes: [{ kind: 'sorted-set', key: 'k' }] }]),
  ],
  [
    'a certificate without its key',
    /cert and key are only of use together/,
    (raw) => (raw.sources['shop']!['tls'] = { cert: '-----BEGIN CERTIFICATE-----' }),
  ],
  [
    'partitionBy with a wildcard',
    /is not one table/,
    (raw) => (raw.sources['shop']!['partitionBy'] = { 'shop.*': ['a'] }),
  ],
  [
    'partitionBy of a table that is not captured',
    /is a table that is not captured/,
    (raw) => (raw.sources['shop']!['partitionBy'] = { 'other.a': ['a'] }),
  ],
  [
    'onUnseenChangeOf of a table that is not captured',
    /is a table that is not captured/,
    (raw) => (raw.sources['shop']!['onUnseenChangeOf'] = { 'other.a': 'warn' }),
  ],
  [
    'half a login',
    /neither a user nor an API key/,
    (raw) =>
      (raw.sinks['search'] = {
        kind: 'elasticsearch',
        nodes: ['http://e:9200'],
        auth: { username: 'u' },
        tables: [{ match: 'shop.*' }],
      }),
  ],
];

for (const [name, message, change] of CONFLICTS) {
  test(`refused: ${name}`, () => {
    const problem = conflict(change);
    assert.match(problem.message, message);
    assert.match(problem.code, /^CONFIG_(CONFLICT|VALUE_MISSING)$/);
    assert.match(String(problem.where['place']), /^mysync\.yaml:1:\d+$/);
    assert.notEqual(problem.remedy, '');
  });
}

test('weaker retention is accepted when it is asked for', () => {
  assert.ok(load((raw) => (raw.transport = { deleteRetentionMs: 1000, allowWeakerTopic: true })).ok);
});

test('a sink of several sources is warned of', () => {
  const result = load((raw) => (raw.sources['other'] = { ...raw.sources['shop'] }));
  assert.ok(result.ok);
  assert.match(result.warnings.map(String).join(), /takes 2 sources/);
});

test('a source that withholds large rows for a sink that halts at them is warned of', () => {
  const warnings = (change: (raw: Raw) => void): string => {
    const result = load(change);
    assert.ok(result.ok, result.ok ? '' : result.problems.map(String).join('\n'));
    return result.warnings.map(String).join();
  };
  const withhold = (raw: Raw) => Object.assign(raw.sources['shop'] ?? {}, { onLargeRow: 'withhold' });
  const withholdOne = (raw: Raw) =>
    Object.assign(raw.sources['shop'] ?? {}, { onLargeRowOf: { 'shop.a': 'withhold' } });
  const sink = (raw: Raw, options: Record<string, unknown>) => Object.assign(raw.sinks['cache'] ?? {}, options);
  const told = /sinks\.cache\.onPoison: source 'shop' withholds .*\n.*\n.*onPoison: park/;
  assert.match(warnings(withhold), told);
  assert.match(warnings(withholdOne), told);
  const park = (raw: Raw) => sink(raw, { onPoison: 'park' });
  assert.equal(
    warnings((raw) => [withhold(raw), park(raw)]),
    '',
  );
  const ofOne = [{ match: ['shop.a'], onPoison: 'dead-letter' }, { match: ['shop.*'] }];
  assert.equal(
    warnings((raw) => [withholdOne(raw), sink(raw, { tables: ofOne })]),
    '',
  );
  assert.match(
    warnings((raw) => [withhold(raw), sink(raw, { tables: ofOne })]),
    told,
  );
  const otherHalts = [{ match: ['shop.a'] }, { match: ['shop.*'], onPoison: 'halt' }];
  assert.equal(
    warnings((raw) => [withholdOne(raw), sink(raw, { onPoison: 'park', tables: otherHalts })]),
    '',
  );
});

test('the fingerprint changes with what is published, and with nothing else', () => {
  const print = (change: (raw: Raw) => void): string => {
    const result = load(change);
    assert.ok(result.ok, result.ok ? '' : result.problems.map(String).join('\n'));
    return configFingerprint(result.config, 'shop');
  };
  const same = print(() => undefined);
  assert.match(same, /^[0-9a-f]{16}$/);
  assert.equal(
    print((raw) => (raw.sources['shop']!['user'] = 'v')),
    same,
  );
  assert.equal(
    print((raw) => (raw.sinks = {})),
    same,
  );
  const others = [
    print((raw) => (raw.sources['shop']!['tables'] = ['shop.*', '!shop.a'])),
    print((raw) => (raw.sources['shop']!['noKey'] = 'refuse')),
    print((raw) => (raw.sources['shop']!['partitionBy'] = { 'shop.a': ['b'] })),
    print((raw) => (raw.sources['shop']!['topic'] = 'other')),
    print((raw) => (raw.transport['partitions'] = 5)),
  ];
  assert.equal(new Set([same, ...others]).size, 6);
});
