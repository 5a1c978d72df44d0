/** The doctor and failing starts against a real server: codes, remedies, exit codes. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { randomName, runMysync, startServer, type TestServer } from '@mysync/harness';

interface FoundFinding {
  readonly part: string;
  readonly level: string;
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
}

const folder = mkdtempSync(join(tmpdir(), 'mysync-check-'));
const database = randomName('check');
let server: TestServer;

before(async () => {
  server = await startServer('mariadb');
  await sql(server, `CREATE DATABASE ${database}`);
  await sql(server, `CREATE TABLE ${database}.orders (id BIGINT PRIMARY KEY, customer_id INT, note TEXT)`);
  await sql(server, `CREATE TABLE ${database}.notes (text VARCHAR(10))`);
  await sql(server, "CREATE USER nobody@'%' IDENTIFIED BY 'n0body'");
  await sql(server, "CREATE USER least@'%' IDENTIFIED BY 'l3ast'");
  for (const user of ['nobody', 'least']) await sql(server, `GRANT SELECT ON ${database}.* TO ${user}@'%'`);
});

after(async () => {
  rmSync(folder, { recursive: true });
  await server?.wipe();
});

async function sql(on: TestServer, statement: string): Promise<string> {
  return await on.client('sql', ['-N', '-e', statement]);
}

interface Choice {
  readonly on?: TestServer;
  readonly user?: string;
  readonly password?: string;
  readonly source?: Record<string, unknown>;
  readonly tables?: readonly Record<string, unknown>[];
}

/** A configuration with a sink that cannot be reached: its findings are not looked at here. */
function configOf(choice: Choice): { args: string[]; env: Record<string, string> } {
  const on = choice.on ?? server;
  const path = join(folder, `${randomName('config')}.yaml`);
  const config = {
    sources: {
      shop: {
        hosts: `${on.get('MYSQL_HOST')}:${on.get('MYSQL_PORT')}`,
        user: choice.user ?? on.get('MYSQL_USER'),
        password: { env: 'SHOP_PASSWORD' },
        tables: `${database}.*`,
        ...choice.source,
      },
    },
    transport: { log: { path: `${path}.log` } },
    checkpoint: { path: `${path}.checkpoints` },
    sinks: choice.tables === undefined ? {} : { cache: { kind: 'redis', hosts: '127.0.0.1:1', tables: choice.tables } },
    telemetry: { port: 0 },
  };
  writeFileSync(path, JSON.stringify(config));
  return { args: ['-c', path], env: { SHOP_PASSWORD: choice.password ?? on.get('MYSQL_PASSWORD') } };
}

async function check(
  choice: Choice,
): Promise<{ code: number | null; bad: readonly FoundFinding[]; all: readonly FoundFinding[] }> {
  const { args, env } = configOf(choice);
  const result = await runMysync(['check', '--json', ...args], { env });
  const all: readonly FoundFinding[] = JSON.parse(result.stdout).findings;
  // Neither the sink nor the topic is there: other tests look at those.
  const bad = all.filter(
    ({ level, code }) => level !== 'ok' && !['SINK_UNREACHABLE', 'TRANSPORT_TOPIC_MISSING'].includes(code),
  );
  return { code: result.code, bad, all };
}

function find(findings: readonly FoundFinding[], code: string): FoundFinding {
  const found = findings.find((finding) => finding.code === code);
  assert.ok(found, `no finding ${code} in ${JSON.stringify(findings)}`);
  return found;
}

/** What a start says that cannot go on. */
async function failingStart(choice: Choice): Promise<{ code: number | null; stderr: string }> {
  const { args, env } = configOf(choice);
  const { code, stderr } = await runMysync(['reader', ...args], { env });
  if (choice.password !== undefined) assert.ok(!stderr.includes(choice.password), 'the password was printed');
  return { code, stderr };
}

test('a healthy server', async () => {
  const { code, bad, all } = await check({});
  assert.equal(code, 0, JSON.stringify(bad));
  assert.deepEqual(
    bad.map((finding) => [finding.level, finding.code]),
    [['warning', 'SOURCE_TABLE_WITHOUT_KEY']],
  );
  assert.match(bad[0]?.remedy ?? '', /ALTER TABLE .*notes/);
  assert.doesNotMatch(bad[0]?.remedy ?? '', /noKey/);
  assert.match(bad[0]?.message ?? '', /equal rows are one row in the sinks/);
  assert.ok(all.length > 5);
});

test('the grants that a finding names are enough', async () => {
  const first = await check({ user: 'least', password: 'l3ast' });
  assert.equal(first.code, 3);
  const statements = first.bad.filter(({ code }) => code === 'SOURCE_GRANT_MISSING').map(({ remedy }) => remedy);
  assert.ok(statements.length > 0, JSON.stringify(first.bad));
  for (const statement of statements) await sql(server, statement);
  const second = await check({ user: 'least', password: 'l3ast' });
  assert.deepEqual(
    second.bad.filter(({ level }) => level === 'error'),
    [],
  );
  assert.equal(second.code, 0);
});

test('a user without grants', async () => {
  const { code, bad } = await check({ user: 'nobody', password: 'n0body' });
  assert.equal(code, 3);
  assert.match(find(bad, 'SOURCE_GRANT_MISSING').remedy, /^GRANT .* TO 'nobody'@'%'/);
  const start = await failingStart({ user: 'nobody', password: 'n0body' });
  assert.equal(start.code, 1);
  assert.match(start.stderr, /^SOURCE_GRANT_MISSING: [\s\S]*what to do: GRANT /m);
});

test('a wrong password', async () => {
  const { code, bad } = await check({ password: 'wr0ng-password' });
  assert.equal(code, 3);
  assert.match(find(bad, 'SOURCE_ACCESS_DENIED').remedy, /user and password.*CREATE USER '\w+'@'%'.*GRANT SELECT/);
  const start = await failingStart({ password: 'wr0ng-password' });
  assert.equal(start.code, 1);
  assert.match(start.stderr, /^SOURCE_ACCESS_DENIED: /m);
});

test('statement format', async () => {
  await sql(server, "SET GLOBAL binlog_format = 'STATEMENT'");
  try {
    const { code, bad } = await check({});
    assert.equal(code, 3);
    const { remedy } = find(bad, 'SOURCE_FORMAT_NOT_ROW');
    assert.match(remedy, /SET GLOBAL binlog_format = 'ROW'/);
    const start = await failingStart({});
    assert.equal(start.code, 1);
    assert.match(start.stderr, /^SOURCE_FORMAT_NOT_ROW: /m);
    await sql(server, remedy.slice(0, remedy.indexOf(';')));
    assert.equal((await check({})).code, 0);
  } finally {
    await sql(server, "SET GLOBAL binlog_format = 'ROW'");
  }
});

test('no binary log', async () => {
  await using off = await startServer('mariadb', { args: ['--skip-log-bin'] });
  await sql(off, `CREATE DATABASE ${database}`);
  await sql(off, `CREATE TABLE ${database}.orders (id BIGINT PRIMARY KEY)`);
  const { code, bad } = await check({ on: off });
  assert.equal(code, 3);
  assert.match(find(bad, 'SOURCE_BINLOG_OFF').remedy, /--log-bin/);
  const start = await failingStart({ on: off });
  assert.equal(start.code, 1);
  assert.match(start.stderr, /^SOURCE_BINLOG_OFF: /m);
});

test('tables that are not there', async () => {
  const none = await check({ source: { tables: `${database}.ordrs` } });
  assert.equal(none.code, 3);
  assert.equal(find(none.bad, 'SOURCE_TABLES_NONE').level, 'error');
  const one = await check({ source: { tables: [`${database}.orders`, `${database}.ordrs`] } });
  assert.equal(one.code, 0);
  assert.match(find(one.bad, 'CHECK_PATTERN_UNUSED').message, /'check_\w+\.ordrs'/);
  const named = { [`${database}.ordrs`]: 'withhold', [`\`${database}\`.orders`]: 'withhold' };
  const option = await check({ source: { onLargeRowOf: named } });
  assert.deepEqual(
    option.bad.filter(({ code }) => code === 'CHECK_PATTERN_UNUSED').map(({ message }) => message),
    [`onLargeRowOf names '${database}.ordrs': there is no such table`],
  );
});

test('mappings are held against the tables as they are', async () => {
  const orders = `${database}.orders`;
  const source = { tables: orders };
  const column = await check({ source, tables: [{ match: orders, fields: ['id', 'custmer_id'] }] });
  assert.equal(column.code, 3);
  assert.match(find(column.bad, 'MAPPING_COLUMN_UNKNOWN').message, /'custmer_id' .*did you mean customer_id\?/);
  const unstable = await check({ source, tables: [{ match: orders, key: 'o:{column:customer_id}:{key}' }] });
  assert.equal(find(unstable.bad, 'MAPPING_KEY_UNSTABLE').level, 'error');
  const partitionBy = { [orders]: ['customer_id'] };
  const stable = await check({
    source: { ...source, partitionBy },
    tables: [{ match: orders, key: 'o:{column:customer_id}:{key}' }],
  });
  assert.deepEqual(stable.bad, []);
  const unused = await check({ source, tables: [{ match: `${database}.other` }] });
  assert.deepEqual(unused.bad.map(({ code }) => code).sort(), ['CHECK_RULE_UNUSED', 'CHECK_TABLE_UNUSED']);
});

test('MySQL without RELOAD: an error where a snapshot will be taken, mended by either grant that the finding names', async () => {
  await using mysql = await startServer('mysql');
  await sql(mysql, `CREATE DATABASE ${database}`);
  await sql(mysql, `CREATE TABLE ${database}.orders (id BIGINT PRIMARY KEY)`);
  await sql(mysql, "CREATE USER least@'%' IDENTIFIED BY 'l3ast'");
  await sql(mysql, "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT, BACKUP_ADMIN ON *.* TO least@'%'");
  const choice = { on: mysql, user: 'least', password: 'l3ast' };
  const { code, bad } = await check(choice);
  assert.equal(code, 3, JSON.stringify(bad));
  const { level, remedy } = find(bad, 'SOURCE_SNAPSHOT_DENIED');
  assert.equal(level, 'error');
  const start = await failingStart(choice);
  assert.equal(start.code, 1);
  assert.match(start.stderr, /^SOURCE_SNAPSHOT_DENIED: /m);
  const latest = await check({ ...choice, source: { start: 'latest' } });
  assert.equal(latest.code, 0);
  assert.equal(find(latest.bad, 'SOURCE_SNAPSHOT_DENIED').level, 'warning');
  const [reload = '', locks = ''] = remedy.split('; or: ');
  for (const grant of [locks, reload]) {
    await sql(mysql, grant);
    const mended = await check(choice);
    assert.deepEqual(
      mended.bad.filter((each) => each.code === 'SOURCE_SNAPSHOT_DENIED'),
      [],
      grant,
    );
    await sql(mysql, grant.replace('GRANT', 'REVOKE').replace(' TO ', ' FROM '));
  }
});

test('a position that the log no longer holds', async () => {
  await sql(server, 'FLUSH BINARY LOGS');
  const [newest = ''] = (await sql(server, 'SHOW BINARY LOGS')).trim().split('\n').slice(-1);
  const file = newest.split('\t')[0] ?? '';
  const at = async (position: string) => await check({ source: { start: position } });
  assert.deepEqual(
    (await at(`${file}:4`)).bad.filter(({ level }) => level === 'error'),
    [],
  );
  assert.equal(find((await at(`${file}:999999999`)).bad, 'SOURCE_POSITION_UNKNOWN').level, 'error');
  await sql(server, `PURGE BINARY LOGS TO '${file}'`);
  const older = file.replace(/\d+$/, (digits) => '1'.padStart(digits.length, '0'));
  const purged = await at(`${older}:4`);
  assert.equal(purged.code, 3);
  assert.equal(find(purged.bad, 'SOURCE_BINLOG_PURGED').level, 'error');
});
