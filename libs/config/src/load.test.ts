import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { MysyncError } from '@mysync/core';
import { type Config, type LoadOptions, type LoadResult, loadConfig } from './index.ts';

const folder = mkdtempSync(join(tmpdir(), 'mysync-config-'));
after(() => rmSync(folder, { recursive: true }));

const SHOP = `
sources:
  shop:
    hosts: ['127.0.0.1:3306']
    user: mysync
    password: { env: SHOP_PASSWORD }
    tables: ['shop.*']
sinks:
  cache:
    kind: redis
    hosts: 127.0.0.1:6379
    tables:
      - match: shop.*
        key: '{table}:{key}'
`;

function load(text: string, options: LoadOptions = {}): LoadResult {
  return loadConfig({ path: 'mysync.yaml', text, environment: { SHOP_PASSWORD: 'pw' }, ...options });
}

function valid(text: string, options: LoadOptions = {}): Config {
  const result = load(text, options);
  assert.ok(result.ok, result.ok ? '' : result.problems.map(String).join('\n'));
  return result.config;
}

function problems(text: string, options: LoadOptions = {}): readonly MysyncError[] {
  const result = load(text, options);
  assert.ok(!result.ok, 'the configuration was accepted');
  return result.problems;
}

function only(text: string, options: LoadOptions = {}): MysyncError {
  const found = problems(text, options);
  assert.equal(found.length, 1, found.map(String).join('\n'));
  return found[0] as MysyncError;
}

test('a short file gets every default', () => {
  const config = valid(SHOP);
  assert.deepEqual(config.sources['shop']?.hosts, ['127.0.0.1:3306']);
  assert.equal(config.sources['shop']?.password?.reveal(), 'pw');
  assert.equal(config.sources['shop']?.start, 'snapshot');
  assert.equal(config.transport.kind, 'log');
  assert.equal(config.transport.deleteRetentionMs, 604_800_000);
  assert.equal(config.telemetry.port, 9187);
  const sink = config.sinks['cache'];
  assert.equal(sink?.kind, 'redis');
  assert.deepEqual(sink?.hosts, ['127.0.0.1:6379'], 'a single value stands for a list of one');
});

test('defaults < file < environment < flags', () => {
  const text = `${SHOP}reader: { checkpointMs: 10, drainMs: 10, heartbeatMs: 1000 }\n`;
  const environment = { SHOP_PASSWORD: 'pw', MYSYNC_READER_DRAIN_MS: '20', MYSYNC_READER_HEARTBEAT_MS: '2000' };
  const { reader } = valid(text, { environment, settings: ['reader.heartbeatMs=3000'] });
  assert.deepEqual(
    [reader.batchMessages, reader.checkpointMs, reader.drainMs, reader.heartbeatMs],
    [1000, 10, 20, 3000],
  );
});

test('variables and flags reach every kind of option', () => {
  const environment = {
    SHOP_PASSWORD: 'pw',
    MYSYNC_SOURCES_SHOP_TABLES: 'shop.a, shop.b',
    MYSYNC_SOURCES_SHOP_TLS: 'true',
    MYSYNC_SOURCES_SHOP_SERVER_ID: '77',
    MYSYNC_SINKS_CACHE_TABLES_0_KEY: 'k:{key}',
    MYSYNC_TRANSPORT_ALLOW_WEAKER_TOPIC: 'true',
    MYSYNC_TELEMETRY_LOG_LEVEL: 'debug',
  };
  const settings = [
    'sources.shop.partitionBy.shop.a=customer_id',
    'transport.kafka.brokers=[a:1, b:2]',
    'transport.kafka.sasl={ username: u, password: p }',
    'telemetry.enabled=false',
    'sinks.cache.tables.0.as=json',
  ];
  const config = valid(SHOP, { environment, settings });
  const shop = config.sources['shop'];
  assert.deepEqual(shop?.tables, ['shop.a', 'shop.b']);
  assert.deepEqual(shop?.tls, { verify: true, verifyName: true });
  assert.equal(shop?.serverId, 77);
  assert.deepEqual(shop?.partitionBy, { 'shop.a': ['customer_id'] });
  assert.equal(config.transport.allowWeakerTopic, true);
  assert.deepEqual(config.transport.kafka.brokers, ['a:1', 'b:2']);
  assert.equal(config.transport.kafka.sasl?.password.reveal(), 'p');
  assert.equal(config.telemetry.enabled, false);
  assert.equal(config.telemetry.logLevel, 'debug');
  const rule = config.sinks['cache']?.tables[0];
  assert.deepEqual(rule, { match: ['shop.*'], as: 'json', key: 'k:{key}' });
});

test('a source can come from variables alone', () => {
  const environment = {
    MYSYNC_SOURCES_SHOP_HOSTS: 'db:3306',
    MYSYNC_SOURCES_SHOP_USER: 'u',
    MYSYNC_SOURCES_SHOP_PASSWORD: 'p',
    MYSYNC_SOURCES_SHOP_TABLES: 'shop.*',
    MYSYNC_SOURCES_SHOP_CONNECTION_TIMEOUT_MS: '5',
  };
  const { sources } = valid('', { environment });
  assert.deepEqual(Object.keys(sources), ['shop']);
  assert.equal(sources['shop']?.password?.reveal(), 'p');
  assert.equal(sources['shop']?.connectionTimeoutMs, 5);
});

test('an unknown key is an error with place, suggestion and the keys that there are', () => {
  const problem = only(SHOP.replace("key: '", "kee: '"));
  assert.equal(problem.code, 'CONFIG_UNKNOWN_KEY');
  assert.match(problem.message, /sinks\.cache\.tables\[0\]\.kee is no option \(did you mean key\?\)/);
  assert.equal(problem.where['place'], 'mysync.yaml:14:9');
  assert.match(String(problem.where['allowed']), /\bttlSeconds\b/);
});

test('a wrong value names key, place, value, what is near and what is allowed', () => {
  const kind = only(`${SHOP}transport: { kind: kafak }\n`);
  assert.equal(kind.code, 'CONFIG_VALUE_INVALID');
  assert.equal(kind.message, "transport.kind is 'kafak' (did you mean kafka?)");
  assert.equal(kind.remedy, 'Allowed: log, kafka.');
  assert.equal(kind.where['place'], 'mysync.yaml:15:14');
  const sink = only(SHOP.replace('kind: redis', 'kind: rediss'));
  assert.equal(sink.remedy, 'Allowed: redis, elasticsearch.');
  const number = only(`${SHOP}transport: { partitions: 0 }\n`);
  assert.equal(number.message, 'transport.partitions is 0, below 1');
  assert.equal(number.remedy, 'Allowed: a whole number from 1 to 10000.');
  const host = only(SHOP.replace("'127.0.0.1:3306'", "'127.0.0.1:99999'"));
  assert.match(host.message, /sources\.shop\.hosts\[0\] is '127\.0\.0\.1:99999', which has a port beyond 65535/);
  const start = only(SHOP.replace('user:', 'start: yesterday\n    user:'));
  assert.match(start.remedy, /snapshot, latest, earliest or FILE:OFFSET/);
  const poison = only(SHOP.replace('kind: redis', 'kind: redis\n    onPoison: skip'));
  assert.equal(poison.remedy, 'Allowed: halt, park, dead-letter.');
});

test('the place of a wrong value is the variable or flag that set it', () => {
  const environment = { SHOP_PASSWORD: 'pw', MYSYNC_TRANSPORT_PARTITIONS: 'many' };
  assert.equal(only(SHOP, { environment }).where['place'], 'environment variable MYSYNC_TRANSPORT_PARTITIONS');
  assert.equal(only(SHOP, { settings: ['transport.partitions=0'] }).where['place'], 'flag --transport.partitions');
});

test('missing values say how to set them', () => {
  const problem = only(SHOP.replace('    user: mysync\n', ''));
  assert.equal(problem.code, 'CONFIG_VALUE_MISSING');
  assert.match(problem.remedy, /Set sources\.shop\.user \(or MYSYNC_SOURCES_SHOP_USER\)/);
  assert.equal(only('').code, 'CONFIG_VALUE_MISSING');
  assert.match(only('sources: {}').message, /sources is empty/);
});

test('everything wrong is listed at once', () => {
  const text = SHOP.replace('user:', 'usr:').replace('kind: redis', 'kind: redi');
  const found = problems(`${text}transport: { partitions: 0 }\n`, { settings: ['telemetry.prt=1'] });
  assert.deepEqual(found.map((problem) => problem.where['key']).sort(), [
    'sinks.cache.kind',
    'sources.shop.user',
    'sources.shop.usr',
    'telemetry.prt',
    'transport.partitions',
  ]);
});

test('patterns and templates are checked, with the codes of the mapping room', () => {
  const pattern = only(SHOP.replace("tables: ['shop.*']", "tables: ['shop']"));
  assert.equal(pattern.code, 'MAPPING_PATTERN_INVALID');
  assert.equal(pattern.where['key'], 'sources.shop.tables[0]');
  const template = only(SHOP.replace("'{table}:{key}'", "'{table}{key}'"));
  assert.equal(template.code, 'MAPPING_TEMPLATE_INVALID');
  assert.match(template.message, /nothing stands between placeholders/);
});

test('flags that name nothing or have no value', () => {
  const [unknown, empty] = problems(SHOP, { settings: ['transprt.kind=log', 'transport.kind'] });
  assert.equal(unknown?.code, 'CONFIG_UNKNOWN_KEY');
  assert.match(unknown?.message ?? '', /did you mean transport\?/);
  assert.equal(empty?.code, 'CONFIG_FLAG_INVALID');
});

test('an unknown variable is a warning; those of Kubernetes are passed over', () => {
  const environment = {
    SHOP_PASSWORD: 'pw',
    MYSYNC_REDER_DRAIN_MS: '1',
    MYSYNC_SERVICE_HOST: '10.0.0.1',
    MYSYNC_PORT: 'tcp://10.0.0.1:9187',
    MYSYNC_PORT_9187_TCP_ADDR: '10.0.0.1',
    MYSYNC_READER_SERVICE_PORT_TELEMETRY: '9187',
  };
  const result = load(SHOP, { environment });
  assert.ok(result.ok);
  assert.deepEqual(
    result.warnings.map((warning) => warning.message),
    ['the environment variable MYSYNC_REDER_DRAIN_MS names no option (did you mean MYSYNC_READER_DRAIN_MS?)'],
  );
});

test('secrets: from a variable, from a file, or said to be missing', () => {
  const file = join(folder, 'secret');
  writeFileSync(file, 'from file\n');
  const password = (text: string): string => SHOP.replace('{ env: SHOP_PASSWORD }', text);
  assert.equal(valid(password(`{ file: ${file} }`)).sources['shop']?.password?.reveal(), 'from file');
  assert.equal(valid(password("''")).sources['shop']?.password?.reveal(), '');
  const environment = { SHOP_PASSWORD: 'pw', MYSYNC_SOURCES_SHOP_PASSWORD_FILE: file };
  assert.equal(valid(SHOP, { environment }).sources['shop']?.password?.reveal(), 'from file');
  const missing = only(SHOP, { environment: {} });
  assert.equal(missing.code, 'CONFIG_SECRET_MISSING');
  assert.match(missing.message, /SHOP_PASSWORD, which is not set/);
  assert.match(only(SHOP, { environment: { SHOP_PASSWORD: '' } }).message, /which is empty/);
  const noFile = only(password(`{ file: ${folder}/none }`));
  assert.equal(noFile.code, 'CONFIG_SECRET_MISSING');
  const plain = load(password('plain'));
  assert.deepEqual(
    plain.warnings.map((warning) => warning.code),
    ['CONFIG_SECRET_PLAIN'],
  );
  assert.match(only(password('12345')).message, /is a number, not text/);
  assert.match(only(password('{ evn: X }')).message, /neither \{ env: NAME \} nor \{ file: PATH \}/);
});

test('files: missing, unreadable as YAML, doubled keys, not a section', () => {
  const none = loadConfig({ path: join(folder, 'none.yaml'), environment: {} });
  assert.ok(!none.ok);
  assert.equal(none.problems[0]?.code, 'CONFIG_FILE_MISSING');
  const broken = only('sources:\n  shop: [\n');
  assert.equal(broken.code, 'CONFIG_SYNTAX');
  assert.match(String(broken.where['place']), /^mysync\.yaml:\d+:\d+$/);
  const twice = only(`${SHOP}  cache:\n    kind: redis\n`);
  assert.equal(twice.code, 'CONFIG_SYNTAX');
  assert.match(twice.message, /second time/);
  assert.equal(twice.where['place'], 'mysync.yaml:15:3');
  assert.equal(only('- a\n').code, 'CONFIG_SYNTAX');
});

test('MYSYNC_CONFIG names the file', () => {
  const path = join(folder, 'other.yaml');
  writeFileSync(path, SHOP);
  const result = loadConfig({ environment: { MYSYNC_CONFIG: path, SHOP_PASSWORD: 'pw' } });
  assert.ok(result.ok);
  assert.equal(result.path, path);
});

test('a name that begins with an underscore or holds a dot is refused', () => {
  assert.equal(only(SHOP.replace('  cache:', '  __proto__:')).code, 'CONFIG_NAME_INVALID');
  assert.equal(only(SHOP.replace('  cache:', '  my.cache:')).code, 'CONFIG_NAME_INVALID');
  assert.equal(({} as Record<string, unknown>)['kind'], undefined);
});
