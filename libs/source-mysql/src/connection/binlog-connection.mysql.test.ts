/** The connection alone, beside another library's reading of the same log, by place and by GTIDs, and damaged events of a real log. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { startServer, type TestServer } from '@mysync/harness';
import fc from 'fast-check';
import { EVENT } from '../binlog/column-types.ts';
import { readControlEvent } from '../binlog/control-events.ts';
import type { ControlEvent, LogEvent } from '../binlog/log-event.ts';
import { connect, FLAVORS, TestDatabase } from '../testing.fixture.ts';
import type { DumpStart } from './commands.ts';
import { secondOpinion } from './second-opinion.fixture.ts';
import { readWholeLog } from './whole-log.fixture.ts';

for (const flavor of FLAVORS) {
  describe(`connection to ${flavor}`, { timeout: 170_000 }, () => {
    let server: TestServer;
    let db: TestDatabase;
    let last: string;

    before(async () => {
      server = await startServer(flavor);
      db = await TestDatabase.create(flavor, server);
      last = `CREATE TABLE ${db.name}.the_last (id INT PRIMARY KEY)`;
      const tagged =
        flavor === 'mysql'
          ? ["SET gtid_next = 'AUTOMATIC:blue'", 'INSERT INTO t VALUES (10)', "SET gtid_next = 'AUTOMATIC'"]
          : ['SET gtid_domain_id = 7', 'INSERT INTO t VALUES (10)', 'SET gtid_domain_id = 0'];
      await db.run(
        'CREATE TABLE t (id INT PRIMARY KEY, v LONGBLOB)',
        'ALTER TABLE t DROP COLUMN v',
        'INSERT INTO t VALUES (1), (2)',
        'FLUSH BINARY LOGS',
        ...tagged,
        'BEGIN',
        'UPDATE t SET id = 3 WHERE id = 2',
        'SAVEPOINT `a b`',
        'DELETE FROM t WHERE id = 1',
        'COMMIT',
        'FLUSH BINARY LOGS',
        "XA START 'x', 'y', 5",
        'INSERT INTO t VALUES (20)',
        "XA END 'x', 'y', 5",
        "XA PREPARE 'x', 'y', 5",
      );
      // MariaDB's session can do nothing else meanwhile
      const other = await connect(server);
      await other.query(`CREATE TABLE ${db.name}.\`ünï""code\` (id INT PRIMARY KEY)`);
      await other.end();
      await db.run(
        "XA COMMIT 'x', 'y', 5",
        "XA START 'z'",
        'INSERT INTO t VALUES (21)',
        "XA END 'z'",
        "XA COMMIT 'z' ONE PHASE",
        last,
      );
    });
    after(async () => {
      await db.sql.end();
      await server.wipe();
    });

    const readAll = (start: DumpStart, farthestOffset?: number): Promise<LogEvent[]> =>
      readWholeLog({
        host: { host: '127.0.0.1', port: db.port },
        start,
        ...(farthestOffset === undefined ? {} : { farthestOffset }),
      });
    const first = async (): Promise<string> => (await db.select('SHOW BINARY LOGS'))[0]?.[0] ?? '';

    it('reads rotations, GTIDs, statements and ends as another library does', async () => {
      const file = await first();
      const theirs = await secondOpinion({ port: db.port, file, lastStatement: last });
      const ours = (await readAll({ kind: 'place', file, offset: 4 })).flatMap((event) => lineOf(event.control) ?? []);
      assert.deepEqual(ours.slice(0, theirs.length), theirs);
      assert.ok(theirs.length > 25, `${theirs.length} lines`);
      assert.equal(theirs.filter((line) => line.startsWith('rotate')).length > 3, true);
    });

    it('finds a place that cannot be asked for as if it had been', async () => {
      const file = await first();
      const seen = (events: readonly LogEvent[]) =>
        events.map(({ type, nextOffset, buffer, start, end, control }) => ({
          type,
          nextOffset,
          // these two tell what was asked for, which is another place
          bytes: type === EVENT.FORMAT_DESCRIPTION || type === EVENT.ROTATE ? '' : buffer.toString('hex', start, end),
          control,
        }));
      const all = await readAll({ kind: 'place', file, offset: 4 });
      const isLast = ({ type, nextOffset }: LogEvent): boolean => type === EVENT.ROTATE && nextOffset > 0;
      const offsets = all
        .slice(0, all.findIndex(isLast))
        .flatMap(({ nextOffset }) => (nextOffset > 0 ? [nextOffset] : []));
      assert.ok(offsets.length > 5);
      for (const offset of offsets.slice(1)) {
        const start = { kind: 'place', file, offset } as const;
        assert.deepEqual(seen(await readAll(start, offset - 1)), seen(await readAll(start)), `offset ${offset}`);
      }
      const between = { kind: 'place', file, offset: (offsets[3] as number) + 1 } as const;
      await assert.rejects(readAll(between, 4), (error) => isMysyncError(error, 'SOURCE_POSITION_UNKNOWN'));
    });

    it('knows the time of commits', async () => {
      const events = await readAll({ kind: 'place', file: await first(), offset: 4 });
      const gtids = events.flatMap(({ control, seconds }) =>
        control.kind === 'gtid' ? [{ ...control, seconds }] : [],
      );
      if (flavor === 'mariadb') {
        assert.equal(gtids.length, 0);
        return;
      }
      assert.ok(gtids.some((control) => control.gtid.includes(':blue:')));
      for (const { commitTimeMicros, seconds, gtid } of gtids) {
        const late = commitTimeMicros / 1e6 - seconds;
        assert.ok(late > -1 && late < 60, `${gtid}: ${commitTimeMicros} µs, statement at ${seconds} s`);
      }
    });

    it('begins behind a set of GTIDs', async () => {
      const file = await first();
      const events = await readAll({ kind: 'place', file, offset: 4 });
      const all = events.flatMap(({ control }) =>
        (control.kind === 'gtid' || control.kind === 'mariadb-gtid') && control.gtid !== '' ? [control.gtid] : [],
      );
      const [known] = await db.select(
        flavor === 'mysql' ? 'SELECT @@GLOBAL.gtid_executed' : 'SELECT @@GLOBAL.gtid_binlog_pos',
      );
      await db.run('DELETE FROM t');
      const rest = await readAll({ kind: 'gtids', flavor, gtidSet: (known?.[0] ?? '').replace(/\s/g, '') });
      const fresh = rest.flatMap(({ control }) =>
        control.kind === 'gtid' || control.kind === 'mariadb-gtid' ? [control.gtid] : [],
      );
      assert.equal(fresh.length, 1);
      assert.ok(!all.includes(fresh[0] ?? ''));
    });

    it('meets damaged events with an error, never with a hang or without bound', async () => {
      const events = await readAll({ kind: 'place', file: await first(), offset: 4 });
      const bodies = events
        .filter((event) => event.control.kind !== 'none')
        .map(({ type, buffer, start, end }) => ({ type, body: Buffer.from(buffer.subarray(start, end)) }));
      const read = (type: number, body: Buffer): void => {
        try {
          readControlEvent(type, 1, body, 0, body.length);
        } catch (error) {
          const isZlib = String((error as { code?: unknown }).code).startsWith('Z_') || error instanceof Error;
          assert.ok(error instanceof RangeError || (type === 165 && isZlib), String(error));
        }
      };
      for (const { type, body } of bodies) {
        for (let length = 0; length < body.length; length += 1) read(type, body.subarray(0, length));
        for (let bit = 0; bit < body.length * 8; bit += 1) {
          const flipped = Buffer.from(body);
          flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7));
          read(type, flipped);
        }
      }
      fc.assert(
        fc.property(fc.integer({ min: 0, max: 175 }), fc.uint8Array({ maxLength: 200 }), (type, bytes) => {
          read(type, Buffer.from(bytes));
        }),
        { numRuns: 20_000 },
      );
    });
  });
}

function lineOf(control: ControlEvent): string | undefined {
  switch (control.kind) {
    case 'rotate':
      return `rotate ${control.file} ${control.offset}`;
    case 'query':
      return `query ${control.database} ${control.statement}`;
    case 'gtid':
      return `gtid ${control.gtid}`;
    case 'mariadb-gtid':
      return `mariadb-gtid ${control.gtid} ${control.standalone} ${control.preparedXa}`;
    case 'gtid-set':
      return `gtid-set ${control.gtidSet}`;
    case 'xid':
      return 'xid';
    case 'xa-prepare':
      return `xa-prepare ${control.onePhase}`;
    default:
      return undefined;
  }
}
