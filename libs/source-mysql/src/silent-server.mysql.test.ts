/** A server that takes a connection and then says nothing more: nobody waits for ever, nothing is left behind, and a stop is a stop. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { FileCheckpointStore } from '@mysync/checkpoint';
import { isMysyncError, type SourcePosition, systemClock } from '@mysync/core';
import { TcpProxy, until } from '@mysync/harness';
import { BinlogConnection } from './connection/binlog-connection.ts';
import { CREDENTIALS } from './connection/whole-log.fixture.ts';
import { TestHistory } from './history/history.fixture.ts';
import type { BinlogSource, StreamObserver } from './port.ts';
import { ServerSession } from './server/session.ts';
import { failureOf, rowsOf, TestDatabase } from './testing.fixture.ts';

const credentials = { ...CREDENTIALS, connectionTimeoutMs: 500 };
const LIMIT = { timeout: 30_000 };
let db: TestDatabase;
let proxy: TcpProxy;

before(async () => {
  db = await TestDatabase.create('mariadb');
  await db.run('CREATE TABLE t (id INT PRIMARY KEY)');
  proxy = await TcpProxy.open(db.port);
});

after(async () => {
  await proxy.close();
  await db.close();
});

/** From the first packet with this text on; resolves then. */
function silentFrom(text: string): Promise<void> {
  return new Promise((resolve) => {
    proxy.isCounted = (sent) => {
      if (!sent.includes(text)) return false;
      proxy.hold();
      proxy.isCounted = () => false;
      resolve();
      return false;
    };
  });
}

/** Reads the log, and stops when the server has fallen silent behind that text: resolves when the stream has ended. */
async function stopAmid(source: BinlogSource, from: SourcePosition, text: string): Promise<void> {
  const stop = new AbortController();
  const silent = silentFrom(text);
  try {
    const reading = (async () => {
      for await (const _ of source.stream({ from, signal: stop.signal }));
    })();
    await silent;
    stop.abort();
    await reading;
  } finally {
    proxy.release();
  }
}

const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;

test('a connection for the log is given up and closed where the server is silent after the login', LIMIT, async () => {
  const silent = silentFrom('@master_binlog_checksum');
  const before = sockets();
  try {
    const opening = BinlogConnection.open({
      host: proxy.address,
      credentials,
      serverId: 3_700_000_000,
      hostName: 'test',
      replicaUuid: randomUUID(),
      heartbeatMs: 1000,
      queueBytes: 1 << 16,
      silenceMs: 3000,
      clock: systemClock,
      start: { kind: 'place', file: '', offset: 4 },
    });
    const failure = failureOf(opening);
    await silent;
    const error = await failure;
    assert.ok(isMysyncError(error, 'SOURCE_UNREACHABLE'), String(error));
    // both sides of the proxy stay open: it holds everything back
    await until('our side is closed', () => sockets() === before + 2, { timeoutMs: 5000 });
  } finally {
    proxy.release();
  }
});

test('a session is given up where the server is silent after the login', LIMIT, async () => {
  const silent = silentFrom('SELECT VERSION()');
  try {
    const failure = failureOf(ServerSession.open(credentials, proxy.address));
    await silent;
    const error = await failure;
    assert.ok(isMysyncError(error, 'SOURCE_UNREACHABLE'), String(error));
    assert.ok(error.retriable);
  } finally {
    proxy.release();
  }
});

test('a stop ends the stream while the server is silent', LIMIT, async () => {
  const source = db.source({ hosts: [proxy.address], connectionTimeoutMs: 600_000 });
  const open = sockets();
  const from = await source.currentPosition();
  await until('the question is over', () => sockets() <= open);
  for (const text of ['SELECT VERSION()', '@master_binlog_checksum']) {
    const before = sockets();
    await stopAmid(source, from, text);
    await until('what was opened too late is closed', () => sockets() <= before);
  }
});

test('what was opened too late for a stop is closed also where opening went wrong in the end', LIMIT, async () => {
  await using history = await TestHistory.create();
  const store = await FileCheckpointStore.open({ path: history.path });
  const schemaHistory = await store.schemaHistory();
  const open = sockets();
  // its first definitions are asked for once the log is open, and by then nobody may ask any more
  const settings = { rowMetadata: 'history', schemaHistory } as const;
  const source = db.source({ ...settings, hosts: [proxy.address], connectionTimeoutMs: 600_000 });
  const from = await source.currentPosition();
  await until('the question is over', () => sockets() <= open);
  await stopAmid(source, from, '@master_binlog_checksum');
  await until('nothing is open', () => sockets() <= open, { timeoutMs: 10_000 });
  await store.close();
});

test(
  'the observer knows that the log is not read for as long as it is not, and that it is read again',
  LIMIT,
  async () => {
    const source = db.source({ hosts: [proxy.address], connectionTimeoutMs: 500, heartbeatMs: 200 });
    const from = await source.currentPosition();
    const stop = new AbortController();
    const told: string[] = [];
    const heard: (number | undefined)[] = [];
    const observer: StreamObserver = {
      brokeOff: (error, heardMs) => {
        told.push(error.code);
        heard.push(heardMs);
      },
      reads: () => told.push('reads'),
    };
    const rows: number[] = [];
    const reading = (async () => {
      for await (const items of source.stream({ from, signal: stop.signal, observer })) rows.push(rowsOf(items).length);
    })();
    try {
      await until('it reads an idle log', () => told.length > 0);
      assert.deepEqual(told, ['reads'], 'told once, and before any change');
      const before = systemClock.monotonic();
      proxy.hold();
      await until('it broke off, and no connection came', () => told.length > 3, { timeoutMs: 20_000 });
      assert.equal(told[1], 'SOURCE_CONNECTION_LOST');
      assert.ok((heard[0] ?? 0) > before - 1_000 && (heard[0] ?? 0) <= systemClock.monotonic() - 600, String(heard[0]));
      assert.deepEqual([...new Set(told.slice(2))], ['SOURCE_UNREACHABLE']);
      assert.equal(heard[2], undefined);
      proxy.release();
      await until('it reads again', () => told.at(-1) === 'reads', { timeoutMs: 20_000 });
      await db.run('INSERT INTO t VALUES (77)');
      await until('the row came', () => rows.some((count) => count > 0));
      assert.equal(told.filter((each) => each === 'reads').length, 2);
    } finally {
      proxy.release();
      stop.abort();
      await reading;
    }
  },
);
