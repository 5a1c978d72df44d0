/** Wrong settings, servers and rights: a start says what is wrong, where, and what mends it; once that is done, nothing is missing. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  assertClean,
  assertTold,
  errorsIn,
  Pipeline,
  type PipelineOptions,
  runMysync,
  startServer,
  TcpProxy,
  type TestServer,
  until,
  untilTold,
} from '@mysync/harness';
import type { Connection } from 'mysql2/promise';

const SECRET = 'n0tForAnyEye';
let mariadb: TestServer;

before(async () => {
  mariadb = await startServer('mariadb');
  await root("CREATE USER known@'%' IDENTIFIED BY 'n0tForAnyEye'; GRANT ALL ON *.* TO known@'%'");
});
after(() => mariadb?.wipe());

async function root(statement: string): Promise<string> {
  return await mariadb.client('sql', ['-N', '-e', statement]);
}

/** A table with rows, and a user with a password that is not to be seen. */
async function pipelineOf(options: Partial<PipelineOptions> = {}): Promise<Pipeline> {
  const pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    servers: { mariadb },
    partitions: 2,
    ...options,
    sourceConfig: { user: 'known', password: SECRET, ...options.sourceConfig },
  });
  await someRows(pipeline.sql);
  return pipeline;
}

async function someRows(sql: Connection): Promise<void> {
  await sql.query("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO t VALUES (1, 'one'), (2, 'two')");
}

/** Starts a verb that cannot go on, and gives all that it printed. */
async function failing(pipeline: Pipeline, verb = 'run', code = 1): Promise<string> {
  const result = await runMysync([...verb.split(' '), '--config', pipeline.configFile]);
  assert.equal(result.code, code, `ended with ${result.code ?? result.signal}: ${result.stderr}`);
  assert.equal(result.stdout, '');
  return result.stderr;
}

/** It starts now, and nothing is missing. */
async function mended(pipeline: Pipeline, tables: readonly string[] = ['t']): Promise<void> {
  const mysync = pipeline.start('run');
  await pipeline.equal(tables);
  await pipeline.stopped(mysync);
  assertClean(mysync.stderr, [SECRET]);
}

test('typing errors in the configuration: key path, line, allowed values, a suggestion, and nothing is started', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mysync-typing-'));
  try {
    const file = join(folder, 'mysync.yaml');
    await writeFile(
      file,
      `sources:
  shop:
    hots: [127.0.0.1:1]
    user: shop
    password: ${SECRET}
    tables: [shop]
    heartbeatMs: soon
transport:
  kind: kafak
  partitons: 4
sinks:
  cache:
    kind: redis
    url: redis://shop:${SECRET}@127.0.0.1:1
    tables:
      - match: [shop.*]
        as: hsah
        key: '{table}:{colum:id}'
      - match: [shop.*]
        key: '{table}:{key'
telemetry:
  port: 70000
`,
    );
    const { code, stdout, stderr } = await runMysync(['run', '--config', file]);
    assert.deepEqual([code, stdout], [2, ''], stderr);
    const told = errorsIn(stderr);
    const expected: readonly [string, RegExp, RegExp][] = [
      ['CONFIG_UNKNOWN_KEY', /sources\.shop\.hots .*did you mean hosts\?.*mysync\.yaml:3:5/, /config options/],
      ['MAPPING_PATTERN_INVALID', /sources\.shop\.tables\[0\].*mysync\.yaml:6:14/, /database\.table/],
      ['CONFIG_VALUE_INVALID', /sources\.shop\.heartbeatMs is 'soon'.*mysync\.yaml:7:5/, /Allowed: /],
      ['CONFIG_VALUE_INVALID', /transport\.kind is 'kafak'.*did you mean kafka\?.*:9:3/, /Allowed: log, kafka/],
      ['CONFIG_UNKNOWN_KEY', /transport\.partitons .*did you mean partitions\?.*:10:3/, /config options/],
      ['CONFIG_VALUE_INVALID', /sinks\.cache\.url.*:14:5/, /redis:/],
      ['CONFIG_VALUE_INVALID', /as is 'hsah'.*did you mean hash\?.*:17:9/, /Allowed: hash, json/],
      ['MAPPING_TEMPLATE_INVALID', /key: .*colum.*:18:9/, /\{column:NAME\}/],
      ['MAPPING_TEMPLATE_INVALID', /key: .*:20:9/, /\{\{ and \}\}/],
      ['CONFIG_VALUE_INVALID', /telemetry\.port is 70000.*:22:3/, /65535/],
    ];
    for (const [code, where, remedy] of expected) {
      const found = told.find((error) => error.code === code && where.test(`${error.message} (${error.where})`));
      assert.ok(found, `no ${code} ${where} in:\n${stderr}`);
      assert.match(found.remedy, remedy);
    }
    assertClean(stderr, [SECRET]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('a wrong password of the source', async () => {
  await using pipeline = await pipelineOf({ sourceConfig: { password: 'wr0ng-0ne' } });
  assertTold(await failing(pipeline), {
    code: 'SOURCE_ACCESS_DENIED',
    where: [/known/, /127\.0\.0\.1/],
    remedy: /user and password/,
    secrets: [SECRET, 'wr0ng-0ne'],
  });
  await root("SET PASSWORD FOR known@'%' = PASSWORD('wr0ng-0ne')");
  try {
    await mended(pipeline);
  } finally {
    await root(`SET PASSWORD FOR known@'%' = PASSWORD('${SECRET}')`);
  }
});

test('a wrong password of Redis, which goes on as soon as Redis takes it', async () => {
  await using pipeline = await pipelineOf({ sinkConfig: { password: 'wr0ng-0ne' } });
  const { redis } = pipeline;
  await redis?.client('cli', ['CONFIG', 'SET', 'requirepass', SECRET]);
  const mysync = pipeline.start('run');
  await untilTold(mysync, {
    code: 'SINK_DENIED',
    where: [/sink redis/, /127\.0\.0\.1/],
    remedy: /user, the password/,
    secrets: [SECRET, 'wr0ng-0ne'],
  });
  await redis?.client('cli', ['-a', SECRET, 'CONFIG', 'SET', 'requirepass', 'wr0ng-0ne']);
  await until('it is let in', () => mysync.stderr.includes('the sink takes changes again'));
  await redis?.client('cli', ['-a', 'wr0ng-0ne', 'CONFIG', 'SET', 'requirepass', '']);
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
});

test('a user without rights: the statements that are named are enough', async () => {
  await root(`CREATE USER poor@'%' IDENTIFIED BY '${SECRET}'`);
  await using pipeline = await pipelineOf({ sourceConfig: { user: 'poor' } });
  await root(`GRANT SELECT ON ${pipeline.database}.* TO poor@'%'`);
  const granted: string[] = [];
  for (let round = 0; round < 4; round += 1) {
    const result = await runMysync(['check', '--json', '--config', pipeline.configFile]);
    if (result.code === 0) break;
    const { remedy } = assertTold(await failing(pipeline), {
      code: 'SOURCE_GRANT_MISSING',
      where: [/poor|REPLICATION|RELOAD|BINLOG/, /host 127\.0\.0\.1/],
      remedy: /^GRANT .* TO 'poor'@'%'/,
      secrets: [SECRET],
    });
    await root(remedy);
    granted.push(remedy);
  }
  assert.ok(granted.length > 0);
  await mended(pipeline);
});

test('servers that cannot be reached are waited for; the place is named', async () => {
  await using toSource = await TcpProxy.open(Number(mariadb.get('MYSQL_PORT')));
  await using pipeline = await pipelineOf({ sourceConfig: { hosts: [`127.0.0.1:${toSource.port}`] } });
  await using toRedis = await TcpProxy.open(Number(pipeline.redis?.get('REDIS_PORT')));
  await pipeline.configure({ ...pipeline.options, sinkConfig: { url: `redis://127.0.0.1:${toRedis.port}` } });
  await toSource.close();
  await toRedis.close();
  const mysync = pipeline.start('run');
  await untilTold(mysync, {
    code: 'SOURCE_UNREACHABLE',
    where: [new RegExp(`127\\.0\\.0\\.1:${toSource.port}`)],
    remedy: /Start the server/,
    secrets: [SECRET],
  });
  await toSource.listen();
  await untilTold(mysync, {
    code: 'SINK_UNREACHABLE',
    where: [new RegExp(`127\\.0\\.0\\.1:${toRedis.port}`), /sink redis/],
    remedy: /goes on trying/,
    secrets: [SECRET],
  });
  await toRedis.listen();
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
});

for (const [name, config, code, place] of [
  [
    'a broker',
    { transport: { kind: 'kafka', kafka: { brokers: ['127.0.0.1:1'], requestTimeoutMs: 1_000 } } },
    'TRANSPORT_UNREACHABLE',
    /:1\b/,
  ],
  [
    'Elasticsearch',
    { sinks: { search: { kind: 'elasticsearch', nodes: ['http://127.0.0.1:1'], tables: [{ match: '*.*' }] } } },
    'SINK_UNREACHABLE',
    /127\.0\.0\.1:1\b/,
  ],
] as const) {
  test(`${name} that cannot be reached`, async () => {
    await using pipeline = await pipelineOf({ config });
    const mysync = pipeline.start('run');
    await untilTold(mysync, { code, where: [place], remedy: /goes on trying/, secrets: [SECRET] });
    assert.equal((await mysync.stop()).code, 0, mysync.stderr);
  });
}

test('a stop does not wait for brokers that do not answer', async () => {
  const kafka = { brokers: ['127.0.0.1:1'], requestTimeoutMs: 60_000 };
  await using pipeline = await pipelineOf({ config: { transport: { kind: 'kafka', kafka } } });
  for (const verb of ['reader', 'writer --sink redis']) {
    const mysync = pipeline.start(verb);
    await mysync.logged(/"msg":"started"/);
    assert.equal((await mysync.stop()).code, 0, mysync.stderr);
  }
});

test('statement format', async () => {
  await using pipeline = await pipelineOf();
  await root("SET GLOBAL binlog_format = 'STATEMENT'");
  try {
    const { remedy } = assertTold(await failing(pipeline), {
      code: 'SOURCE_FORMAT_NOT_ROW',
      where: [/STATEMENT/, /host 127\.0\.0\.1/],
      remedy: /SET GLOBAL binlog_format = 'ROW'/,
      secrets: [SECRET],
    });
    await root(remedy.slice(0, remedy.indexOf(';')));
    const other = await pipeline.connect();
    await other.query("INSERT INTO t VALUES (3, 'three')");
    await mended(pipeline);
  } finally {
    await root("SET GLOBAL binlog_format = 'ROW'");
  }
});

test('no binary log', async () => {
  await using off = await startServer('mariadb', { args: ['--skip-log-bin'] });
  await using pipeline = await Pipeline.create({ transport: 'log', sinks: ['redis'], servers: { mariadb: off } });
  await someRows(pipeline.sql);
  assertTold(await failing(pipeline), {
    code: 'SOURCE_BINLOG_OFF',
    where: [/host 127\.0\.0\.1/],
    remedy: /--log-bin/,
  });
  await pipeline.sql.end();
  await off.down();
  await off.up([]);
  pipeline.sql = await pipeline.connect();
  await mended(pipeline);
});

test('patterns that match no table', async () => {
  await using pipeline = await pipelineOf();
  const options = pipeline.options;
  await pipeline.configure({ ...options, sourceConfig: { ...options.sourceConfig, tables: ['no_such.*'] } });
  assertTold(await failing(pipeline), {
    code: 'SOURCE_TABLES_NONE',
    where: [/host 127\.0\.0\.1/],
    remedy: /patterns/,
    secrets: [SECRET],
  });
  await pipeline.configure(options);
  await mended(pipeline);
});

test('a template that does not fit the table', async () => {
  await using pipeline = await pipelineOf();
  const tables = (key: string) => [{ match: ['*.*'], as: 'hash', key }];
  for (const [key, code, where, remedy] of [
    ['{database}:{table}:{column:idd}', 'MAPPING_COLUMN_UNKNOWN', /'idd'.*did you mean id\?/, /Correct the name/],
    ['{database}:{table}:x', 'MAPPING_KEY_INCOMPLETE', /\bid\b/, /Add \{key\}/],
    ['{database}:{table}:{column:v}:{key}', 'MAPPING_KEY_UNSTABLE', /\bv\b/, /partitionBy/],
  ] as const) {
    await pipeline.configure({ ...pipeline.options, sinkConfig: { tables: tables(key) } });
    const mysync = pipeline.start('run');
    await mysync.logged(/"msg":"partition halted"/);
    assertTold(mysync.stderr, {
      code,
      where: [where, new RegExp(`${pipeline.database}\\.t`)],
      remedy,
      secrets: [SECRET],
    });
    await pipeline.stopped(mysync);
  }
  await pipeline.configure();
  await mended(pipeline);
});

test('folders in which no file can be made', { skip: process.platform !== 'linux' }, async () => {
  await using pipeline = await pipelineOf();
  const options = pipeline.options;
  const told = (code: string, path: string, remedy: RegExp) => ({
    code,
    where: [new RegExp(path)],
    remedy,
    secrets: [SECRET],
  });
  for (const path of ['/proc', '/proc/mysync/x']) {
    await pipeline.configure({ ...options, config: { checkpoint: { path } } });
    assertTold(await failing(pipeline), told('CHECKPOINT_UNWRITABLE', path, /folder of the checkpoint/));
    await pipeline.configure({ ...options, config: { transport: { log: { path } } } });
    assertTold(await failing(pipeline), told('LOG_PATH', path, /transport\.log\.path/));
    await pipeline.configure({ ...options, sourceConfig: { ...options.sourceConfig, spoolFolder: path } });
    assertTold(await failing(pipeline), told('SOURCE_SPOOL_FAILED', path, /spoolFolder/));
    const drill = await runMysync([
      'drill',
      '--sink',
      'redis',
      '--table',
      `${pipeline.database}.d`,
      '--folder',
      `${path}/d`,
      '--config',
      pipeline.configFile,
    ]);
    assert.equal(drill.code, 2);
    assertTold(drill.stderr, told('COMMAND_VALUE_INVALID', path, /folder/));
  }
  await pipeline.configure(options);
  await mended(pipeline);
});
