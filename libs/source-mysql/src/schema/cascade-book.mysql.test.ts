/** The log is sent before a statement is committed: the catalogue is asked again until it surely is. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CREDENTIALS } from '../connection/whole-log.fixture.ts';
import { LazySession } from '../server/lazy-session.ts';
import { currentPosition } from '../server/log-state.ts';
import { ServerSession } from '../server/session.ts';
import { TestDatabase } from '../testing.fixture.ts';
import { CascadeBook } from './cascade-book.ts';

let db: TestDatabase;
let session: LazySession;
before(async () => {
  db = await TestDatabase.create('mysql');
  session = new LazySession(() => ServerSession.open(CREDENTIALS, { host: '127.0.0.1', port: db.port }));
  await db.run('CREATE TABLE parent (id INT PRIMARY KEY); CREATE TABLE child (id INT PRIMARY KEY, p INT)');
});
after(async () => {
  session?.close();
  await db?.close();
});

const ref = (table: string): { database: string; table: string } => ({ database: db.name, table });

async function newBook(): Promise<CascadeBook> {
  return new CascadeBook({
    session,
    log: { hidesRows: true },
    logEnd: await session.use(currentPosition),
    foldsNames: false,
    captures: ({ database }) => database === db.name,
  });
}

test('until its GTID is executed', async () => {
  const book = await newBook();
  assert.equal((await book.ask()).of(ref('parent')), undefined);
  assert.notEqual(book.current, undefined);
  await db.run('ALTER TABLE child ADD FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE');
  const [[executed = '']] = (await db.select('SELECT @@GLOBAL.gtid_executed')) as [[string]];
  const [[uuid = '']] = (await db.select('SELECT @@GLOBAL.server_uuid')) as [[string]];
  book.noteDdl({ gtid: `${uuid}:9000000000`, tables: [ref('child')] });
  assert.equal(book.current, undefined);
  assert.equal((await book.ask()).of(ref('parent'))?.byDelete.length, 1);
  assert.equal(book.current, undefined, 'a statement is not committed yet');
  const other = await newBook();
  other.noteDdl({ gtid: executed.split(',')[0] ?? '', tables: [ref('child')] });
  await other.ask();
  assert.notEqual(other.current, undefined);
});

test('until its tables can be opened, without GTIDs', async () => {
  const book = await newBook();
  book.noteDdl({ gtid: '', tables: [ref('parent'), ref('child'), ref('gone')] });
  await db.run('LOCK TABLES child WRITE');
  await book.ask().finally(() => db.run('UNLOCK TABLES'));
  assert.equal(book.current, undefined);
  await book.ask();
  assert.notEqual(book.current, undefined);
});

test('a statement before the log end of an answer may have taken a key away', async () => {
  const book = await newBook();
  await db.run('INSERT INTO parent VALUES (1)');
  const place = await session.use(currentPosition);
  assert.equal(book.mayHaveMissed(place), false);
  await db.run('INSERT INTO parent VALUES (2)');
  await book.ask();
  assert.equal(book.mayHaveMissed(place), true);
  assert.equal(book.isOf(place), false);
  assert.equal(book.isOf(await session.use(currentPosition)), true);
});
