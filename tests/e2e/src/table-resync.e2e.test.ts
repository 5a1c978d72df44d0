/** Changes that the log does not show as rows: the copies equal the tables again, no row is ever seen older than before, whatever is killed. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type MysyncProcess, Pipeline, runMysync, startServer, type TestServer, until } from '@mysync/harness';
import { Redis } from 'ioredis';
import type { Connection } from 'mysql2/promise';

let mariadb: TestServer;
before(async () => {
  mariadb = await startServer('mariadb');
});
after(() => mariadb?.wipe());

const COUNTERS = 40;
const FAST = { reader: { checkpointMs: 200, heartbeatMs: 500 } };

/** Raises counters in `t`, and makes and deletes rows of `extra`, until stopped. */
class Load {
  #stopped = false;
  readonly #done: Promise<void>;
  rounds = 0;

  constructor(sql: Connection, table = 't') {
    this.#done = this.#run(sql, table);
    this.#done.catch(() => undefined);
  }

  async #run(sql: Connection, table: string): Promise<void> {
    while (!this.#stopped) {
      this.rounds += 1;
      await sql.query(`UPDATE ${table} SET n = n + 1 WHERE id < ${COUNTERS} AND id % 4 = ?`, [this.rounds % 4]);
      await sql.query(`INSERT INTO ${table} (id, n) VALUES (?, 0) ON DUPLICATE KEY UPDATE n = n + 1`, [
        1000 + (this.rounds % 50),
      ]);
      await sql.query(`DELETE FROM ${table} WHERE id = ?`, [1000 + ((this.rounds + 25) % 50)]);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop().catch(() => undefined);
  }
}

/** Reads the counters' copies again and again; gives the times that one was seen lower than before. */
class Watch {
  #stopped = false;
  readonly #found: Promise<string[]>;

  constructor(pipeline: Pipeline, table = 't') {
    this.#found = this.#run(pipeline.redis?.get('REDIS_URL') ?? '', `${pipeline.database}:${table}:`);
    this.#found.catch(() => undefined);
  }

  async #run(url: string, prefix: string): Promise<string[]> {
    const redis = new Redis(url, { lazyConnect: true, retryStrategy: null });
    await redis.connect();
    const highest = new Map<number, number>();
    const backward: string[] = [];
    while (!this.#stopped) {
      const batch = redis.pipeline();
      for (let id = 0; id < COUNTERS; id += 1) batch.hget(`${prefix}${id}`, 'n');
      for (const [id, [, text]] of ((await batch.exec()) ?? []).entries()) {
        if (text === null) continue;
        const value = Number(text);
        if (value < (highest.get(id) ?? 0)) backward.push(`${id}: ${highest.get(id)} then ${value}`);
        highest.set(id, Math.max(value, highest.get(id) ?? 0));
      }
    }
    redis.disconnect();
    return backward;
  }

  async stop(): Promise<string[]> {
    this.#stopped = true;
    return await this.#found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop().catch(() => undefined);
  }
}

async function counters(sql: Connection, table = 't'): Promise<void> {
  await sql.query(`CREATE TABLE ${table} (id INT PRIMARY KEY, n INT, pad VARCHAR(200))`);
  await sql.query(`INSERT INTO ${table} VALUES ?`, [Array.from({ length: COUNTERS }, (_, id) => [id, 0, 'x'])]);
}

const readAgain = (table: string): RegExp => new RegExp(`"table":"[^"]*\\.${table}"[^\\n]*"msg":"table read again"`);

for (const source of ['mariadb', 'mysql'] as const) {
  test(`${source}: statements, partitions, swaps and renames while rows are written`, {
    timeout: 300_000,
  }, async () => {
    await using pipeline = await Pipeline.create({
      source,
      transport: 'log',
      sinks: ['redis'],
      ...(source === 'mariadb' ? { servers: { mariadb } } : {}),
      config: FAST,
      sourceConfig: { heartbeatMs: 500 },
    });
    const { sql, database } = pipeline;
    await counters(sql);
    await counters(sql, 'swapped');
    await sql.query(
      'CREATE TABLE p (id INT PRIMARY KEY, n INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION p2 VALUES LESS THAN MAXVALUE); CREATE TABLE ex (id INT PRIMARY KEY, n INT)',
    );
    await sql.query(
      'INSERT INTO p VALUES (1, 1), (2, 2), (11, 11), (12, 12), (30, 30); INSERT INTO ex VALUES (3, 33), (4, 44)',
    );
    const mysync = pipeline.start('run');
    await pipeline.equal(['t', 'swapped', 'p', 'ex']);
    await mysync.logged(/"msg":"reading the log"/);
    await using load = new Load(await pipeline.connect());
    await using before = new Load(await pipeline.connect(), 'swapped');
    await using watch = new Watch(pipeline);
    await using watchSwapped = new Watch(pipeline, 'swapped');
    const other = await pipeline.connect();

    // D6: a session that logs statements, in the middle of others
    await other.query("SET SESSION binlog_format = 'STATEMENT'");
    await other.query('UPDATE t SET n = n + 10, pad = ? WHERE id < 20', ['unseen']);
    await other.query('INSERT INTO t (id, n) VALUES (500, 1), (501, 2)');
    await mysync.logged(readAgain('t'));
    await other.query('BEGIN; UPDATE t SET n = n + 1 WHERE id < 30; DELETE FROM t WHERE id >= 500; COMMIT');
    await other.query("SET SESSION binlog_format = 'ROW'");

    // B16
    await other.query('ALTER TABLE p TRUNCATE PARTITION p0; INSERT INTO p VALUES (5, 5)');
    await other.query('ALTER TABLE p EXCHANGE PARTITION p1 WITH TABLE ex WITHOUT VALIDATION').catch(async () => {
      await other.query('UPDATE ex SET id = id + 10; ALTER TABLE p EXCHANGE PARTITION p1 WITH TABLE ex');
    });
    await other.query('ALTER TABLE p DROP PARTITION p2; INSERT INTO p VALUES (15, 15)');

    // B10: a copy that is kept equal by a trigger takes the name; then one whose name was never captured before
    await other.query(`CREATE DATABASE ${database}_ghost; CREATE TABLE ${database}_ghost.swapped LIKE swapped`);
    await other.query(`ALTER TABLE ${database}_ghost.swapped ADD COLUMN more INT DEFAULT 7`);
    await before.stop();
    await other.query(
      `INSERT INTO ${database}_ghost.swapped (id, n, pad) SELECT id, n + 1, pad FROM swapped WHERE id <> 3`,
    );
    await other.query(`RENAME TABLE swapped TO ${database}_ghost.old, ${database}_ghost.swapped TO swapped`);
    await using again = new Load(await pipeline.connect(), 'swapped');
    await other.query(
      `CREATE TABLE ${database}_ghost.fresh (id INT PRIMARY KEY, v INT); INSERT INTO ${database}_ghost.fresh VALUES (1, 1), (2, 2)`,
    );
    await other.query(`RENAME TABLE ${database}_ghost.fresh TO fresh; UPDATE fresh SET v = 5 WHERE id = 1`);
    await mysync.logged(readAgain('fresh'));
    await mysync.logged(readAgain('swapped'));
    await mysync.logged(readAgain('ex'));

    await load.stop();
    await again.stop();
    await pipeline.equal(['t', 'swapped', 'p', 'ex', 'fresh']);
    assert.deepEqual([...(await watch.stop()), ...(await watchSwapped.stop())], []);
    await pipeline.stopped(mysync);
    await other.query(`DROP DATABASE ${database}_ghost`);
  });
}

test('mariadb: foreign keys that delete, empty and renumber children', { timeout: 300_000 }, async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis', 'elasticsearch'],
    servers: { mariadb },
    config: FAST,
    sourceConfig: { heartbeatMs: 500 },
  });
  const { sql } = pipeline;
  await sql.query(`
    CREATE TABLE parent (id INT PRIMARY KEY);
    CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE);
    CREATE TABLE orphan (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE SET NULL ON UPDATE CASCADE);
    CREATE TABLE grandchild (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES child (id) ON DELETE CASCADE);
    INSERT INTO parent VALUES (1), (2), (3);
    INSERT INTO child VALUES (1, 1), (2, 2), (3, 3);
    INSERT INTO orphan VALUES (1, 1), (2, 2), (3, 3);
    INSERT INTO grandchild VALUES (1, 1), (2, 2), (3, 3)`);
  const tables = ['parent', 'child', 'orphan', 'grandchild'];
  const mysync = pipeline.start('run');
  await pipeline.equal(tables);
  await mysync.logged(/"msg":"reading the log"/);
  await sql.query('DELETE FROM parent WHERE id = 1; UPDATE parent SET id = 20 WHERE id = 2');
  await pipeline.equal(tables);
  // rows of the child in the transaction of the cascade, before and after it
  await sql.query(
    'BEGIN; INSERT INTO child VALUES (4, 3), (5, 20); DELETE FROM parent WHERE id = 3; INSERT INTO child VALUES (6, 20); COMMIT',
  );
  await pipeline.equal(tables);
  await pipeline.stopped(mysync);
});

test('a table that is captured later is read at the next start', { timeout: 300_000 }, async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    servers: { mariadb },
    config: FAST,
    sourceConfig: { heartbeatMs: 500 },
  });
  const { sql, database } = pipeline;
  await counters(sql);
  await counters(sql, 'later');
  await pipeline.configure({ ...pipeline.options, sourceConfig: { heartbeatMs: 500, tables: [`${database}.t`] } });
  const first = pipeline.start('run');
  await pipeline.equal(['t']);
  await sql.query('UPDATE t SET n = n + 1; UPDATE later SET n = n + 1');
  await pipeline.equal(['t']);
  await first.kill();
  await sql.query('UPDATE t SET n = n + 1; UPDATE later SET n = n + 1; DELETE FROM later WHERE id = 7');
  await pipeline.configure();
  await using load = new Load(await pipeline.connect(), 'later');
  await using watch = new Watch(pipeline, 'later');
  const second = pipeline.start('run');
  await second.logged(readAgain('later'));
  await load.stop();
  await pipeline.equal(['t', 'later']);
  assert.deepEqual(await watch.stop(), []);
  await pipeline.stopped(second);
  const { stdout } = await runMysync(['status', '--config', pipeline.configFile]);
  assert.match(stdout, new RegExp(`complete tables +${database}\\.later, ${database}\\.t`));
});

test('onAlter: resync gives unchanged rows their new shape', { timeout: 300_000 }, async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    servers: { mariadb },
    config: FAST,
    sourceConfig: { heartbeatMs: 500, onAlter: 'resync' },
  });
  const { sql } = pipeline;
  await counters(sql);
  const mysync = pipeline.start('run');
  await pipeline.equal(['t']);
  await mysync.logged(/"msg":"reading the log"/);
  await sql.query('ALTER TABLE t ADD COLUMN d INT DEFAULT 7, CHANGE pad padding VARCHAR(200)');
  await pipeline.equal(['t']);
  await sql.query('ALTER TABLE t MODIFY id BIGINT NOT NULL, MODIFY n DECIMAL(10, 3)');
  await sql.query('UPDATE t SET n = 100 + id WHERE id % 2 = 0');
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
});

for (const transport of ['log', 'kafka'] as const) {
  test(`${transport}: killed in the middle of reading a table again`, { timeout: 600_000 }, async () => {
    await using pipeline = await Pipeline.create({
      transport,
      sinks: ['redis'],
      servers: { mariadb },
      config: { reader: { checkpointMs: 100, heartbeatMs: 500, windowMessages: 400, batchMessages: 20 } },
      sourceConfig: { heartbeatMs: 500 },
    });
    const { sql } = pipeline;
    await counters(sql);
    await sql.query('INSERT INTO t (id, n, pad) SELECT 10000 + seq, 0, REPEAT(?, 200) FROM seq_1_to_40000', ['y']);
    const writer = pipeline.start('writer --sink redis');
    let reader = pipeline.start('reader');
    await pipeline.equal(['t']);
    await using load = new Load(await pipeline.connect());
    await using watch = new Watch(pipeline);
    const other = await pipeline.connect();
    const redis = new Redis(pipeline.redis?.get('REDIS_URL') ?? '', { retryStrategy: null });
    const copyOf = async (id: number): Promise<number> => Number(await redis.hget(`${pipeline.database}:t:${id}`, 'n'));
    let halfway = 0;
    await other.query("SET SESSION binlog_format = 'STATEMENT'");
    for (let kill = 0; kill < 4; kill += 1) {
      await reader.logged(/"msg":"reading the log"/);
      await other.query('UPDATE t SET n = n + 1 WHERE id < ? OR id % 10 = 0', [COUNTERS]);
      await other.query('DELETE FROM t WHERE id > 10000 AND id % 100 = ?', [kill]);
      await reader.logged(/it is read again/);
      // at once, or with some of its rows in the sink
      if (kill > 0)
        await until('some of it went out', async () => (await copyOf(10_010)) > kill, {
          everyMs: 2,
          timeoutMs: 180_000,
        }).catch((cause: unknown) => {
          throw new Error(reader.stderr.slice(-6000), { cause });
        });
      if ((await copyOf(49_990)) <= kill) halfway += 1;
      await reader.kill();
      reader = pipeline.start('reader');
    }
    assert.ok(halfway > 1, `killed ${halfway} times before the end of the table`);
    await reader.logged(readAgain('t'), 180_000).catch((cause: unknown) => {
      throw new Error(reader.stderr.slice(-6000), { cause });
    });
    await load.stop();
    redis.disconnect();
    await pipeline.equal(['t'], 240_000);
    assert.deepEqual(await watch.stop(), []);
    for (const process of [reader, writer] as MysyncProcess[]) await pipeline.stopped(process);
  });
}
