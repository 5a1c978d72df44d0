import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { checkpointStoreConformance, sampleCheckpoint, schemaHistoryConformance } from '@mysync/checkpoint/conformance';
import { type Clock, systemClock } from '@mysync/core';
import { randomName, sharedServer, TcpProxy, type TestServer, until } from '@mysync/harness';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import { MysqlCheckpointLook, MysqlCheckpointStore } from './mysql-store.ts';
import type { MysqlPlace } from './session.ts';

const SOURCE = 'Läden 🛒';

class Bench {
  readonly place: MysqlPlace;
  readonly #sql: Connection;

  constructor(place: MysqlPlace, sql: Connection) {
    this.place = place;
    this.#sql = sql;
  }

  static async open(server: TestServer): Promise<Bench> {
    const address = {
      host: server.get('MYSQL_HOST'),
      port: Number(server.get('MYSQL_PORT')),
      user: server.get('MYSQL_USER'),
      password: server.get('MYSQL_PASSWORD'),
    };
    const sql = await createConnection(address);
    const database = randomName('checkpoint');
    await sql.query(`CREATE DATABASE ${database}`);
    await sql.query(`USE ${database}`);
    return new Bench({ ...address, database }, sql);
  }

  async store(more: { leaseMs?: number; port?: number; clock?: Clock } = {}): Promise<MysqlCheckpointStore> {
    return await MysqlCheckpointStore.open({ ...this.place, source: SOURCE, leaseMs: 200, ...more });
  }

  async query(sql: string, values: readonly unknown[] = []): Promise<void> {
    await this.#sql.query(sql, [...values]);
  }

  async value(sql: string): Promise<unknown> {
    const [rows] = await this.#sql.query<RowDataPacket[]>(sql);
    return Object.values(rows[0] ?? {})[0];
  }

  /** The thread that executes a statement with this beginning, in our database. */
  async thread(beginning: string): Promise<unknown> {
    const [rows] = await this.#sql.query<RowDataPacket[]>('SHOW FULL PROCESSLIST');
    return rows.find((row) => row['db'] === this.place.database && String(row['Info']).startsWith(beginning))?.['Id'];
  }

  /** Bytes in the server's log. */
  async logged(): Promise<number> {
    const [rows] = await this.#sql.query<RowDataPacket[]>('SHOW BINARY LOGS');
    return rows.reduce((sum, row) => sum + Number(row['File_size']), 0);
  }

  /** The owner is dead: nobody renews the row. */
  async abandon(): Promise<void> {
    await this.query("UPDATE mysync_owner SET owner = 'gone 1 x'");
  }

  async dispose(): Promise<void> {
    await this.query(`DROP DATABASE ${this.place.database}`);
    await this.#sql.end();
  }
}

const DAMAGES = { truncated: 'LEFT(body, 40)', foreign: "'[client]\\nuser=me\\n'", garbage: "X'00FF10'" };

for (const name of ['mariadb', 'mysql'] as const) {
  describe(name, () => {
    let server: TestServer;
    before(async () => {
      server = await sharedServer(name);
    });

    checkpointStoreConformance(`a table of ${name}`, async () => {
      const bench = await Bench.open(server);
      return {
        open: () => bench.store(),
        damage: (kind) => bench.query(`UPDATE mysync_checkpoint SET body = ${DAMAGES[kind]}`),
        dispose: () => bench.dispose(),
      };
    });

    schemaHistoryConformance(`a table of ${name}`, async () => {
      const bench = await Bench.open(server);
      return {
        open: async () => {
          const store = await bench.store();
          return { history: await store.schemaHistory(), close: () => store.close() };
        },
        damage: () => bench.query("UPDATE mysync_schema_history SET body = INSERT(body, 20, 1, '~') WHERE line = 0"),
        dispose: () => bench.dispose(),
      };
    });

    describe('ownership', () => {
      let bench: Bench;
      before(async () => {
        bench = await Bench.open(server);
      });
      after(async () => {
        await bench.dispose();
      });

      test('a living owner keeps it, a dead one is replaced, and shut out when it wakes up', async () => {
        const first = await bench.store();
        await first.save(sampleCheckpoint(), null);
        await (await first.schemaHistory()).begin();
        await assert.rejects(bench.store(), { code: 'CHECKPOINT_LOCKED' });
        await bench.abandon();
        const second = await bench.store();
        await assert.rejects(first.save(sampleCheckpoint({ transactionCounter: 1 }), 1), { code: 'CHECKPOINT_FENCED' });
        await assert.rejects((await first.schemaHistory()).begin(), { code: 'CHECKPOINT_FENCED' });
        await second.save(sampleCheckpoint({ epoch: 2 }), 1);
        await first.close();
        assert.equal((await second.load())?.epoch, 2);
        await assert.rejects(bench.store(), { code: 'CHECKPOINT_LOCKED' }, 'closing the first leaves the second alone');
        await second.close();
        await (await bench.store()).close();
      });

      test('a row that is deleted while its dead owner is watched is made anew', async () => {
        const dead = await bench.store();
        await bench.abandon();
        const sleep = async (): Promise<void> => {
          await bench.query('DELETE FROM mysync_owner');
        };
        const next = await bench.store({ clock: { ...systemClock, sleep } });
        await next.save(sampleCheckpoint({ epoch: 2 }), 2);
        await next.close();
        await assert.rejects(dead.save(sampleCheckpoint({ epoch: 2 }), 2), { code: 'CHECKPOINT_FENCED' });
        await dead.close();
      });

      test('whoever looks on sees it, and nothing where there is nothing', async () => {
        const look = async (place: MysqlPlace, source: string): Promise<{ readonly epoch: number } | null> => {
          const opened = new MysqlCheckpointLook(place, source);
          try {
            const seen = await opened.load();
            assert.deepEqual(await opened.load(), seen, 'again over the same connection');
            return seen;
          } finally {
            opened.close();
          }
        };
        assert.equal((await look(bench.place, SOURCE))?.epoch, 2);
        assert.equal(await look(bench.place, 'another'), null);
        const empty = await Bench.open(server);
        assert.equal(await look(empty.place, SOURCE), null);
        await empty.dispose();
      });

      test('a lost connection is retriable, and the next save goes on', async () => {
        await using proxy = await TcpProxy.open(bench.place.port);
        const store = await bench.store({ port: proxy.port });
        await store.save(sampleCheckpoint({ epoch: 3 }), 2);
        await proxy.close();
        await assert.rejects(
          store.save(sampleCheckpoint({ epoch: 4 }), 3),
          (error: { code: string; retriable: boolean }) => {
            assert.equal(error.code, 'CHECKPOINT_UNREACHABLE');
            return error.retriable;
          },
        );
        await proxy.listen();
        await store.save(sampleCheckpoint({ epoch: 4 }), 3);
        assert.equal((await store.load())?.epoch, 4);
        await store.close();
      });

      test('a save that was cut short, or met a full disk, is tried again: the process does not end of it', async () => {
        const store = await bench.store();
        const epoch = (await store.load())?.epoch ?? null;
        const save = (): Promise<void> => store.save(sampleCheckpoint({ epoch: 4 }), epoch);
        await bench.query('START TRANSACTION');
        await bench.query('SELECT * FROM mysync_checkpoint FOR UPDATE');
        const cut = assert.rejects(save(), { code: 'CHECKPOINT_UNREACHABLE', retriable: true });
        const id = await until('the save waits for the row', () => bench.thread('UPDATE mysync_owner JOIN'));
        await bench.query(`KILL QUERY ${id}`);
        await cut;
        await bench.query('ROLLBACK');
        // what a server says only in plights that a test should not make
        for (const [errno, code] of [
          [1021, 'CHECKPOINT_DISK_FULL'],
          [1030, 'CHECKPOINT_DISK_FULL'],
          [1114, 'CHECKPOINT_DISK_FULL'],
          [1047, 'CHECKPOINT_UNREACHABLE'],
          [1079, 'CHECKPOINT_UNREACHABLE'],
          [1184, 'CHECKPOINT_UNREACHABLE'],
          [3024, 'CHECKPOINT_UNREACHABLE'],
        ] as const) {
          const signal = `SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = ${errno}, MESSAGE_TEXT = 'made by the test'`;
          await bench.query(`CREATE TRIGGER plight BEFORE UPDATE ON mysync_checkpoint FOR EACH ROW ${signal}`);
          await assert.rejects(save(), { code, retriable: true }, String(errno));
          await bench.query('DROP TRIGGER plight');
        }
        await save();
        assert.equal((await store.load())?.epoch, 4);
        await store.close();
      });

      test('a save that takes longer than its user may is tried again', {
        skip: name === 'mysql' ? 'MySQL limits the time of SELECT alone' : false,
      }, async () => {
        const user = randomName('hurried');
        const { host, port, database } = bench.place;
        await bench.query(`CREATE USER ${user}@'%' IDENTIFIED BY 'x' WITH MAX_STATEMENT_TIME 0.3`);
        await bench.query(`GRANT ALL ON ${database}.* TO ${user}@'%'`);
        const store = await MysqlCheckpointStore.open({ host, port, database, user, password: 'x', source: SOURCE });
        await bench.query('START TRANSACTION');
        await bench.query('SELECT * FROM mysync_checkpoint FOR UPDATE');
        const save = (): Promise<void> => store.save(sampleCheckpoint({ epoch: 4 }), 4);
        await assert.rejects(save(), { code: 'CHECKPOINT_UNREACHABLE', retriable: true });
        await bench.query('ROLLBACK');
        await save();
        await store.close();
        await bench.query(`DROP USER ${user}@'%'`);
      });

      test("to renew costs little of the server's log, however large the checkpoint is", async () => {
        const store = await bench.store();
        const [partition] = sampleCheckpoint().partitions;
        const partitions = Array.from({ length: 50_000 }, () => partition as NonNullable<typeof partition>);
        const topic = { ...sampleCheckpoint().topic, partitions: partitions.length };
        await store.save(sampleCheckpoint({ epoch: 5, partitions, topic }), 4);
        const size = Number(await bench.value('SELECT LENGTH(body) FROM mysync_checkpoint'));
        const before = await bench.logged();
        const renewals = Number(await bench.value('SELECT renewals FROM mysync_owner'));
        await until('it was renewed ten times', async () => {
          return Number(await bench.value('SELECT renewals FROM mysync_owner')) >= renewals + 10;
        });
        assert.ok((await bench.logged()) - before < size, 'no renewal holds the checkpoint');
        await store.close();
      });

      test('a wrong password, and a database that is not there, are named', async () => {
        const place = { ...bench.place, source: SOURCE };
        await assert.rejects(MysqlCheckpointStore.open({ ...place, password: 'wrong' }), {
          code: 'CHECKPOINT_DENIED',
          remedy: /CREATE USER .*GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON/,
        });
        await assert.rejects(MysqlCheckpointStore.open({ ...place, database: randomName('none') }), {
          code: 'CHECKPOINT_DENIED',
        });
        await assert.rejects(MysqlCheckpointStore.open({ ...place, port: 1 }), { code: 'CHECKPOINT_UNREACHABLE' });
      });

      test('a user with no connection left is one to wait for, a locked one is not, unless it was let in before', async () => {
        const user = randomName('checkpoint');
        await bench.query(`CREATE USER ${user}@'%' IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS 1`);
        const { host, port, database } = bench.place;
        await bench.query(`GRANT ALL ON ${database}.* TO ${user}@'%'`);
        const place = { host, port, database, user, password: 'x', source: SOURCE };
        const held = await createConnection({ host, port, user, password: 'x' });
        try {
          await assert.rejects(MysqlCheckpointStore.open(place), { code: 'CHECKPOINT_UNREACHABLE', retriable: true });
        } finally {
          held.destroy();
        }
        await bench.query(`ALTER USER ${user}@'%' WITH MAX_USER_CONNECTIONS 0`);
        const store = await MysqlCheckpointStore.open({ ...place, leaseMs: 100_000 });
        const epoch = (await store.load())?.epoch ?? null;
        const save = (): Promise<void> => store.save(sampleCheckpoint({ epoch: 5 }), epoch);
        await bench.query(`ALTER USER ${user}@'%' ACCOUNT LOCK`);
        await bench.query(
          `KILL ${await bench.value(`SELECT id FROM information_schema.processlist WHERE user = '${user}'`)}`,
        );
        const codes = new Set<string>();
        await until('it is denied', async () => {
          const { code, retriable } = await save().then(
            () => assert.fail('it was let in'),
            (error: { code: string; retriable: boolean }) => error,
          );
          assert.equal(retriable, true, code);
          return codes.add(code).has('CHECKPOINT_ACCESS_LOST');
        });
        await assert.rejects(MysqlCheckpointStore.open(place), { code: 'CHECKPOINT_DENIED' });
        await bench.query(`ALTER USER ${user}@'%' ACCOUNT UNLOCK`);
        await save();
        await store.close();
        await bench.query(`DROP USER ${user}@'%'`);
      });
    });
  });
}
