/** One connection for everybody who asks: the store's saves, its schema history, and the renewals of its ownership. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { randomName, sharedServer, TcpProxy, until } from '@mysync/harness';
import { type Connection, createConnection } from 'mysql2/promise';
import { CheckpointSession, type MysqlPlace } from './session.ts';

let sql: Connection;
let place: MysqlPlace;

before(async () => {
  const server = await sharedServer('mariadb');
  const address = {
    host: server.get('MYSQL_HOST'),
    port: Number(server.get('MYSQL_PORT')),
    user: server.get('MYSQL_USER'),
    password: server.get('MYSQL_PASSWORD'),
  };
  const database = randomName('session');
  sql = await createConnection(address);
  await sql.query(`CREATE DATABASE ${database}`);
  await sql.query(`USE ${database}`);
  await sql.query('CREATE TABLE kept (id INT PRIMARY KEY)');
  place = { ...address, database };
});

after(async () => {
  await sql.query(`DROP DATABASE ${place.database}`);
  await sql.end();
});

const kept = async (): Promise<unknown> => {
  const [rows] = await sql.query({ sql: 'SELECT id FROM kept ORDER BY id', rowsAsArray: true });
  return rows;
};

test('a statement that comes amid a transaction of others is no part of it', async () => {
  const session = new CheckpointSession(place);
  await session.rows('SELECT 1', []);
  const all = session.changeAll([
    { sql: 'INSERT INTO kept VALUES (1)', values: [] },
    { sql: 'UPDATE kept SET id = 9 WHERE id = 8', values: [], rows: 1 },
  ]);
  const other = session.changeAll([{ sql: 'INSERT INTO kept VALUES (2)', values: [] }]);
  const single = session.change('INSERT INTO kept VALUES (3)', []);
  assert.deepEqual(await Promise.all([all, other, single]), [false, true, 1]);
  assert.deepEqual(await kept(), [[2], [3]]);
  session.close();
});

test('those who ask at once share one connection, also when it was lost, and none is left behind', async () => {
  await using proxy = await TcpProxy.open(place.port);
  const session = new CheckpointSession({ ...place, port: proxy.port });
  const ask = async (): Promise<unknown> => {
    const answers = await Promise.all(
      Array.from({ length: 3 }, () => session.rows('SELECT CONNECTION_ID() AS id, ? AS mine', [place.database])),
    );
    assert.equal(new Set(answers.map(([row]) => String(row?.['id']))).size, 1);
    return answers[0]?.[0]?.['id'];
  };
  const first = await ask();
  await sql.query(`KILL ${first}`);
  await until('the lost connection is noticed', async () => {
    const again = await ask().catch(() => first);
    return again !== first;
  });
  assert.equal(proxy.connections, 2);
  session.close();
});
