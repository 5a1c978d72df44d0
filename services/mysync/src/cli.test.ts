/** The command as a caller sees it: exit codes, texts, streams. Needs no server. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FileCheckpointStore } from '@mysync/checkpoint';
import { MysyncProcess, runMysync } from '@mysync/harness';
import { LogTransport } from '@mysync/transport-log';

const folder = mkdtempSync(join(tmpdir(), 'mysync-cli-'));
after(() => rmSync(folder, { recursive: true }));
const SECRET = 'n0tForAnyEye';
const env = { SHOP_PASSWORD: SECRET };

/** Nothing listens on port 1. */
const FILE = {
  sources: { shop: { hosts: '127.0.0.1:1', user: 'u', password: { env: 'SHOP_PASSWORD' }, tables: 'shop.*' } },
  transport: { log: { path: join(folder, 'log') } },
  checkpoint: { path: join(folder, 'checkpoints') },
  sinks: { cache: { kind: 'redis', hosts: '127.0.0.1:1', tables: { match: 'shop.*' } } },
  telemetry: { port: 0 },
};

function write(name: string, content: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const good = write('good.yaml', FILE);

async function mysync(...args: string[]) {
  const result = await runMysync(args, { env });
  assert.ok(!`${result.stdout}${result.stderr}`.includes(SECRET), 'a secret was printed');
  assert.doesNotMatch(`${result.stdout}${result.stderr}`, /\n\s+at .*:\d+:\d+\)?\n/, 'a stack was printed');
  return result;
}

test('version and help end with 0', async () => {
  const version = await mysync('--version');
  assert.deepEqual([version.code, version.stdout], [0, '0.1.0\n']);
  const help = await mysync('--help');
  assert.equal(help.code, 0);
  assert.match(help.stdout, /Usage: mysync/);
  assert.match(help.stdout, /Exit codes: 0 /);
  const run = await mysync('run', '--help');
  assert.match(run.stdout, /--transport\.kind=… \(default log\)/);
  assert.match(run.stdout, /MYSYNC_TRANSPORT_KIND/);
});

test('a wrong command line ends with 2 and a suggestion', async () => {
  const verb = await mysync('rnu');
  assert.equal(verb.code, 2);
  assert.match(verb.stderr, /^COMMAND_INVALID: unknown command 'rnu' \(Did you mean run\?\)\n {2}what to do: /);
  const option = await mysync('status', '--jsn');
  assert.equal(option.code, 2);
  assert.match(option.stderr, /^COMMAND_INVALID: unknown option '--jsn' \(Did you mean --json\?\)\n {2}what to do: /);
  assert.equal((await mysync()).code, 2);
  assert.equal((await mysync('writer', '-c', good)).code, 2);
  const sink = await mysync('writer', '--sink', 'cach', '-c', good);
  assert.equal(sink.code, 2);
  assert.equal(
    sink.stderr,
    "COMMAND_NAME_UNKNOWN: there is no sink 'cach' (did you mean cache?)\n  where: option --sink\n  what to do: Use one of the configured sinks: cache.\n",
  );
  const source = await mysync('reader', '--source', 'shp', '-c', good);
  assert.equal(source.code, 2);
  assert.match(source.stderr, /^COMMAND_NAME_UNKNOWN: there is no source 'shp' \(did you mean shop\?\)$/m);
  const from = await mysync('tail', '--from', 'begin', '-c', good);
  assert.equal(from.code, 2);
  assert.match(
    from.stderr,
    /^COMMAND_VALUE_INVALID: --from is 'begin'$[\s\S]*what to do: Allowed: earliest, latest, or an offset/m,
  );
  const rows = await mysync('verify', '--sink', 'cache', '--chunk-rows', '0', '-c', good);
  assert.equal(rows.code, 2);
  assert.match(
    rows.stderr,
    /^COMMAND_VALUE_INVALID: --chunk-rows is '0'$[\s\S]*Allowed: a whole number from 1 to 1000000\./m,
  );
  const set = await mysync('config', 'check', '-c', good, '--set');
  assert.equal(set.code, 2);
  assert.match(set.stderr, /^CONFIG_FLAG_INVALID: --set has no value$[\s\S]*what to do: Write --section\.key=VALUE/m);
});

test('config check: valid, invalid, missing', async () => {
  const valid = await mysync('config', 'check', '-c', good);
  assert.deepEqual([valid.code, valid.stdout], [0, `${good}: valid (1 source, 1 sink, transport log)\n`]);
  const bad = write('bad.yaml', 'sources:\n  shop:\n    hots: a\ntransport:\n  kind: kafak\n');
  const invalid = await mysync('config', 'check', '-c', bad);
  assert.equal(invalid.code, 2);
  assert.equal(invalid.stdout, '');
  assert.match(invalid.stderr, /^CONFIG_UNKNOWN_KEY: sources\.shop\.hots is no option \(did you mean hosts\?\)$/m);
  assert.match(invalid.stderr, /place .*bad\.yaml:3:5/);
  assert.match(invalid.stderr, /^CONFIG_VALUE_INVALID: transport\.kind is 'kafak' \(did you mean kafka\?\)$/m);
  assert.match(invalid.stderr, /what to do: Allowed: log, kafka\./);
  const missing = await mysync('config', 'check', '-c', join(folder, 'none.yaml'));
  assert.equal(missing.code, 2);
  assert.match(missing.stderr, /^CONFIG_FILE_MISSING: /);
  const isFolder = await mysync('config', 'check', '-c', folder);
  assert.equal(isFolder.code, 2);
  assert.match(isFolder.stderr, /^CONFIG_FILE_MISSING: '.*' is a folder, not a file$[\s\S]*what to do: Name the file/m);
  const json = JSON.parse((await mysync('config', 'check', '--json', '-c', bad)).stdout);
  assert.equal(json.ok, false);
  assert.ok(json.problems.some((problem: { code: string }) => problem.code === 'CONFIG_UNKNOWN_KEY'));
});

test('flags go over the file; unknown ones end with 2', async () => {
  const printed = await mysync(
    'config',
    'print',
    '--json',
    '-c',
    good,
    '--transport.partitions=9',
    '--set',
    'reader.drainMs=1',
  );
  assert.equal(printed.code, 0);
  const config = JSON.parse(printed.stdout);
  assert.deepEqual([config.transport.partitions, config.reader.drainMs], [9, 1]);
  assert.deepEqual(config.sources.shop.password, { env: 'SHOP_PASSWORD' });
  const wrong = await mysync('config', 'print', '-c', good, '--transport.partitons=9');
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /did you mean partitions\?/);
});

test('run with a wrong configuration starts nothing and ends with 2', async () => {
  const bad = write('bad-run.yaml', { ...FILE, sinks: { cache: { kind: 'redis', tables: { match: 'shop.*' } } } });
  const result = await mysync('run', '-c', bad);
  assert.equal(result.code, 2);
  assert.match(result.stderr, /^CONFIG_CONFLICT: sinks\.cache: names no server$/m);
});

test('check says what cannot be reached and ends with 3', async () => {
  const result = await mysync('check', '-c', good);
  assert.equal(result.code, 3);
  assert.match(result.stdout, /^error +source shop +SOURCE_UNREACHABLE .*127\.0\.0\.1:1/m);
  assert.match(result.stdout, /^error +sink cache +SINK_UNREACHABLE /m);
  assert.match(result.stdout, /what to do: Start the server/);
  assert.match(
    result.stdout,
    /^ok +topic shop +topic 'shop' is not there yet: it will be made at the first start$[\s\S]*2 errors, 0 warnings\n$/m,
  );
  const json = JSON.parse((await mysync('check', '--json', '-c', good)).stdout);
  assert.deepEqual(
    json.findings
      .filter((finding: { level: string }) => finding.level === 'error')
      .map((finding: { code: string }) => finding.code),
    ['SOURCE_UNREACHABLE', 'SINK_UNREACHABLE'],
  );
});

test('a drill whose source is not reached says so, and one that breaks nothing is refused', async () => {
  const args = ['drill', '--sink', 'cache', '--table', 'shop.drilled', '-c', good];
  const away = await mysync(...args, '--folder', join(folder, 'drill'));
  assert.equal(away.code, 1);
  assert.match(away.stderr, /^SOURCE_UNREACHABLE: no answer from 127\.0\.0\.1:1/m);
  assert.match(away.stderr, /what to do: Start the server/);
  const nameless = await mysync(
    ...args,
    '--folder',
    join(folder, 'drill'),
    '--sources.shop.hosts=no-such-host.invalid',
  );
  assert.match(nameless.stderr, /^SOURCE_UNREACHABLE: no answer from no-such-host\.invalid:3306/m);
  const nothing = await mysync(...args, '--seconds', '0');
  assert.equal(nothing.code, 2);
  assert.match(nothing.stderr, /^COMMAND_VALUE_INVALID: --seconds is '0'$/m);
  assert.match(nothing.stderr, /what to do: Allowed: a whole number from 1 to 2147483\./);
  for (const wrong of [
    ['--seconds', '2147484'],
    ['--patience', '0'],
    ['--patience', '2147484'],
  ]) {
    const refused = await mysync(...args, ...wrong);
    assert.deepEqual([refused.code, refused.stderr.split(':', 1)[0]], [2, 'COMMAND_VALUE_INVALID'], wrong.join(' '));
  }
});

test('check shows configuration problems as findings and ends with 2', async () => {
  const bad = write('bad-check.yaml', { ...FILE, transport: { kind: 'kafka' } });
  const result = await mysync('check', '-c', bad);
  assert.equal(result.code, 2);
  assert.match(result.stdout, /^error +configuration +CONFIG_VALUE_MISSING +transport\.kafka\.brokers is missing/m);
});

test('a checkpoint that is not one is found by check, and ends a start with 1', async () => {
  const path = join(folder, 'foreign');
  const file = write('foreign.yaml', { ...FILE, checkpoint: { path } });
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'shop.json'), '{"half');
  const check = await mysync('check', '-c', file);
  assert.match(check.stdout, /^error +source shop +CHECKPOINT_INVALID /m);
  assert.match(check.stdout, /what to do: Put back a copy of this checkpoint/);
  const start = await mysync('reader', '-c', file);
  assert.equal(start.code, 1);
  assert.match(start.stderr, /^CHECKPOINT_INVALID: /m);
});

test('a log folder that cannot be made ends a start with 1 and the remedy', async () => {
  write('a-file', 'x');
  const file = write('path.yaml', { ...FILE, transport: { log: { path: join(folder, 'a-file', 'log') } } });
  const result = await mysync('run', '-c', file);
  assert.equal(result.code, 1);
  assert.match(result.stderr, /^LOG_PATH: /m);
  assert.match(result.stderr, /what to do: Make the directory/);
});

test('a taken telemetry port ends a start with 1 and the remedy', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  try {
    const result = await mysync('run', '-c', good, `--telemetry.port=${port}`);
    assert.equal(result.code, 1);
    assert.match(result.stderr, new RegExp(`^TELEMETRY_PORT_TAKEN: cannot listen on 127\\.0\\.0\\.1:${port}`, 'm'));
    assert.match(
      result.stderr,
      /what to do: Another mysync may run with this configuration.*telemetry\.port to a free port/,
    );
  } finally {
    server.close();
  }
  // an address of documentation (RFC 5737): no machine has it
  const elsewhere = await mysync('run', '-c', good, '--telemetry.host=192.0.2.1');
  assert.equal(elsewhere.code, 1);
  assert.match(
    elsewhere.stderr,
    /^TELEMETRY_LISTEN_FAILED: cannot listen on 192\.0\.2\.1:0$[\s\S]*key telemetry\.host/m,
  );
});

test('a second start of the same is told of the checkpoint, not of the port', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const path = join(folder, 'locked');
  const file = write('locked.yaml', { ...FILE, checkpoint: { path } });
  const store = await FileCheckpointStore.open({ path: join(path, 'shop.json') });
  try {
    const result = await mysync('run', '-c', file, `--telemetry.port=${port}`);
    assert.equal(result.code, 1);
    assert.match(result.stderr, /^CHECKPOINT_LOCKED: /m);
    assert.doesNotMatch(result.stderr, /TELEMETRY_PORT_TAKEN/);
  } finally {
    await store.close();
    server.close();
  }
});

test('what only looks before the first start says where it looked, and makes no log', async () => {
  const log = join(folder, 'not-yet', 'log');
  const file = write('not-yet.yaml', { ...FILE, transport: { log: { path: log } }, checkpoint: { kind: 'topic' } });
  const tail = await mysync('tail', '-c', file);
  assert.equal(tail.code, 1);
  assert.ok(tail.stderr.startsWith(`TRANSPORT_TOPIC_MISSING: there is no topic 'shop' at ${log}\n`), tail.stderr);
  const status = await mysync('status', '-c', file);
  assert.equal(status.code, 0);
  assert.match(status.stdout, /source shop: never started/);
  assert.ok(status.stdout.includes(`sink cache of shop:\n  no topic yet at ${log}\n`), status.stdout);
  const list = await mysync('dlq', 'list', '-c', file);
  assert.deepEqual([list.code, list.stdout], [0, `Nothing is known: no topic 'shop' yet at ${log}.\n`]);
  const json = await mysync('dlq', 'list', '--json', '-c', file);
  assert.deepEqual([json.stdout, json.stderr], ['[]\n', `no topic 'shop' yet at ${log}\n`]);
  const show = await mysync('dlq', 'show', 'shop/0/1', '-c', file);
  assert.equal(show.code, 2);
  assert.ok(show.stderr.includes(`no topic 'shop' yet at ${log}`), show.stderr);
  const verify = await mysync('verify', '--sink', 'cache', '--patience', '1', '-c', file);
  assert.equal(verify.code, 1);
  assert.match(verify.stderr, /^SOURCE_UNREACHABLE: /m);
  assert.ok(!existsSync(join(folder, 'not-yet')), 'no log was made');
});

test('a choice that fits nothing is refused, not ignored', async () => {
  const two = write('two.yaml', {
    ...FILE,
    sources: { ...FILE.sources, other: FILE.sources.shop },
    sinks: { cache: { ...FILE.sinks.cache, sources: 'shop' } },
  });
  assert.equal((await mysync('tail', '-c', two, '--source', 'shp')).code, 2);
  for (const args of [
    ['dlq', 'list', '--sink', 'cache', '--source', 'other'],
    ['verify', '--sink', 'cache', '--source', 'other'],
  ]) {
    const refused = await mysync(...args, '-c', two);
    assert.equal(refused.code, 2);
    assert.match(
      refused.stderr,
      /^COMMAND_NAME_UNKNOWN: there is no source 'other'[\s\S]*configured sources: shop\.$/m,
    );
  }
  const both = await mysync('tail', '--topic', 'shop', '--source', 'nosuch', '-c', two);
  assert.equal(both.code, 2);
  assert.match(both.stderr, /^COMMAND_INVALID: --topic and --source are both given/m);
});

test('a sink that accepts connections and says nothing is told as late, with what to do', {
  timeout: 90_000,
}, async () => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket.on('error', () => undefined))).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const path = join(folder, 'late-log');
  const search = { kind: 'elasticsearch', nodes: `http://127.0.0.1:${port}`, requestTimeoutMs: 600_000 };
  const sinks = { search: { ...search, tables: { match: 'shop.*' } } };
  const file = write('late.yaml', { ...FILE, transport: { log: { path } }, sinks });
  const log = await LogTransport.open({ path, maintenance: false });
  const spec = { compacted: true, deleteRetentionMs: 7 * 86_400_000, minCompactionLagMs: 0, retentionMs: -1 };
  await log.ensureTopic({ name: 'shop', partitions: 1, ...spec, allowWeaker: true });
  await log.close();
  try {
    const status = await mysync('status', '-c', file);
    assert.equal(status.code, 1);
    assert.match(
      status.stdout,
      /^STATUS_LATE: sink search did not answer in 5000 ms\n {2}where: sink search\n {2}what to do: /m,
    );
    assert.match(status.stdout, /source shop: never started/);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});

test('a source that is not there is waited for; a stop meanwhile ends with 0', async () => {
  await using running = new MysyncProcess(['run', '-c', good], { env });
  await running.logged(/"code":"SOURCE_UNREACHABLE".*"msg":"cannot start yet, trying again"/);
  assert.deepEqual(await running.stop(), { code: 0, signal: null });
  assert.ok(!running.stderr.includes(SECRET));
});

test('a question that was stopped before its answer does not end with 0', async () => {
  const checkpoint = { kind: 'mysql', mysql: { host: '127.0.0.1:1', user: 'u' } };
  await using running = new MysyncProcess(['recover', '-c', write('far.yaml', { ...FILE, checkpoint })], { env });
  await running.logged(/"msg":"the checkpoint cannot be opened for now"/);
  assert.deepEqual(await running.stop(), { code: 1, signal: null });
  assert.match(running.stderr, /^COMMAND_STOPPED: stopped before it was done/m);
});

test('what is given on the command line ends with 2 where it cannot be read', async () => {
  const pattern = await mysync('verify', '-c', good, '--sink', 'cache', '--table', 'nodot');
  assert.equal(pattern.code, 2);
  assert.match(pattern.stderr, /^MAPPING_PATTERN_INVALID: /);
  const released = await mysync('dlq', 'retry', '-c', good, '--table', 'nodot');
  assert.equal(released.code, 2);
  assert.match(released.stderr, /^MAPPING_PATTERN_INVALID: /);
  const position = await mysync('ddl', 'skip', '-c', good, '--position', 'bad', '--table', 'shop.t');
  assert.equal(position.code, 2);
  assert.match(position.stderr, /^POSITION_INVALID: /);
});

test('the example is valid', async () => {
  const example = fileURLToPath(new URL('../../../examples/mysync.yaml', import.meta.url));
  const result = await mysync('config', 'check', '-c', example);
  assert.deepEqual([result.code, result.stderr], [0, '']);
});
