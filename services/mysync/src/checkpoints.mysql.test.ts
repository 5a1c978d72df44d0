import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Config, loadConfig } from '@mysync/config';
import { isMysyncError } from '@mysync/core';
import { randomName, sharedServer } from '@mysync/harness';
import { readCheckpoint } from './checkpoints.ts';

test('a checkpoint in MySQL: TLS checks the authority and the name of the certificate', async () => {
  const mysql = await sharedServer('mysql');
  const [user, password] = [mysql.get('MYSQL_USER'), mysql.get('MYSQL_PASSWORD')];
  const sql = (statement: string): Promise<string> => mysql.client('sql', ['-N', '-e', statement]);
  const database = randomName('tls');
  await sql(`CREATE DATABASE ${database}`);
  // made by the server for itself: for no host at all
  const ca = { file: `${(await sql('SELECT @@datadir')).trim()}/ca.pem` };
  const configured = (tls: object): Config => {
    const address = { host: `127.0.0.1:${mysql.get('MYSQL_PORT')}`, user, password, database };
    const content = {
      sources: { shop: { hosts: 'db', user: 'u', tables: 'd.*' } },
      checkpoint: { kind: 'mysql', mysql: { ...address, tls } },
      sinks: { cache: { kind: 'redis', url: 'redis://127.0.0.1:1', tables: { match: 'd.*', as: 'hash' } } },
    };
    const loaded = loadConfig({ text: JSON.stringify(content), path: 'mysync.yaml', environment: {} });
    assert.ok(loaded.ok, loaded.ok ? '' : loaded.problems.join());
    return loaded.config;
  };
  try {
    const refused = (error: unknown): boolean =>
      isMysyncError(error, 'CHECKPOINT_UNWRITABLE') && /verifyName/.test(String(error));
    await assert.rejects(readCheckpoint(configured({ ca }), 'shop'), refused);
    await assert.rejects(readCheckpoint(configured({ verifyName: false }), 'shop'), refused);
    assert.equal(await readCheckpoint(configured({ ca, verifyName: false }), 'shop'), null);
    assert.equal(await readCheckpoint(configured({ verify: false }), 'shop'), null);
  } finally {
    await sql(`DROP DATABASE ${database}`);
  }
});
