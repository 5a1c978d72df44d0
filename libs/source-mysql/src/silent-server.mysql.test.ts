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
import type { BinlogSource } from './port.ts';
import { ServerSession } from './server/session.ts';
import { failureOf, TestDatabase } from './testing.fixture.ts';

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
