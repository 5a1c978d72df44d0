import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { sharedServer } from '@mysync/harness';
import { CREDENTIALS } from '../connection/whole-log.fixture.ts';
import { LazySession } from './lazy-session.ts';
import { ServerSession } from './session.ts';

const opened: ServerSession[] = [];
let open: () => Promise<ServerSession>;

before(async () => {
  const server = await sharedServer('mariadb');
  const host = { host: server.get('MYSQL_HOST'), port: Number(server.get('MYSQL_PORT')) };
  open = async () => {
    const session = await ServerSession.open(CREDENTIALS, host);
    opened.push(session);
    return session;
  };
});

after(() => {
  for (const session of opened) session.close();
});

const threadOf = async (session: ServerSession): Promise<string> =>
  String((await session.first('SELECT CONNECTION_ID() AS id'))?.['id']);

/** Nothing is left behind. */
async function requireClosed(session: ServerSession | undefined): Promise<void> {
  await assert.rejects(threadOf(session as ServerSession), { code: 'SOURCE_CONNECTION_LOST' });
}

test('those who ask at once share one session, also after the server closed it', async () => {
  const session = new LazySession(open);
  const first = await Promise.all([session.use(threadOf), session.use(threadOf), session.use(threadOf)]);
  assert.equal(new Set(first).size, 1);
  const seen = once((opened[0] as ServerSession).connection, 'error');
  const other = await open();
  await other.query(`KILL ${first[0]}`);
  await seen;
  const again = await Promise.all([session.use(threadOf), session.use(threadOf)]);
  assert.equal(new Set(again).size, 1);
  assert.notEqual(again[0], first[0]);
  session.close();
});

test('one that is closed while it is being opened is closed once it is open', async () => {
  const before = opened.length;
  let go = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  const session = new LazySession(() => gate.then(open));
  const asked = session.use(threadOf);
  session.close();
  go();
  await assert.rejects(asked, { code: 'SOURCE_CONNECTION_LOST' });
  assert.equal(opened.length, before + 1);
  await requireClosed(opened.at(-1));
  await assert.rejects(session.use(threadOf), { code: 'SOURCE_CONNECTION_LOST' });
});
