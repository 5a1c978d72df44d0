/**
 * The log is sent before the engines commit: who reads a row that a transaction of the log has changed may still see it as it was.
 * The barrier waits until an ordinary read surely sees the transaction.
 *
 * MariaDB tells which place of the log a consistent view is of (`binlog_snapshot_*`); MySQL tells whether a GTID is committed. Where
 * neither tells (MySQL without GTIDs; XA, whose outcome MariaDB logs before it is done; engines that keep the server waiting), the
 * caller locks the rows instead: their last writer holds them until its commit is done.
 */
import { type BinlogPosition, type ChangeId, type Clock, compareBinlogPositions } from '@mysync/core';
import type { LazySession } from '../server/lazy-session.ts';
import type { ServerSession } from '../server/session.ts';

export interface LoggedTransaction {
  /** Where it begins. */
  readonly id: ChangeId;
  readonly isXa: boolean;
}

export interface CommitBarrierOptions {
  readonly session: LazySession;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** How long an answer is waited for before the rows are locked. */
const WAIT_MS = 1000;
const MAX_PAUSE_MS = 20;

export class CommitBarrier {
  readonly #options: CommitBarrierOptions;
  /** MariaDB: all transactions before this place are committed. */
  #committed: BinlogPosition | undefined;
  #last: LoggedTransaction | undefined;
  #lastPassed = false;

  constructor(options: CommitBarrierOptions) {
    this.#options = options;
  }

  /** True: it is committed, ordinary reads see it. False: that cannot be told. */
  async passed(transaction: LoggedTransaction): Promise<boolean> {
    if (transaction.isXa) return false;
    if (this.#last === transaction) return this.#lastPassed;
    const passed = await this.#ask(transaction.id);
    this.#last = transaction;
    this.#lastPassed = passed;
    return passed;
  }

  async #ask(id: ChangeId): Promise<boolean> {
    if (this.#isBeforeCommitted(id)) return true;
    return await this.#options.session.use(async (session) => {
      if (session.facts.flavor === 'mariadb') return await this.#waitForView(session, id);
      return id.gtid !== '' && (await gtidCommitted(session, id.gtid));
    });
  }

  async #waitForView(session: ServerSession, id: ChangeId): Promise<boolean> {
    const { clock, signal } = this.#options;
    const startedAt = clock.monotonic();
    for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      this.#committed = await viewPosition(session);
      if (this.#isBeforeCommitted(id)) return true;
      if (clock.monotonic() - startedAt > WAIT_MS) return false;
      await clock.sleep(pauseMs, signal);
    }
  }

  /** A position between transactions that is behind the begin of one is behind its end. */
  #isBeforeCommitted(id: ChangeId): boolean {
    return this.#committed !== undefined && compareBinlogPositions(this.#committed, id) > 0;
  }
}

/** Of a view that begins now; all later ones see at least as much. */
async function viewPosition(session: ServerSession): Promise<BinlogPosition | undefined> {
  await session.query('START TRANSACTION WITH CONSISTENT SNAPSHOT');
  const rows = await session.query("SHOW STATUS LIKE 'binlog_snapshot_%'");
  await session.query('COMMIT');
  const status = new Map(rows.map((row) => [String(row['Variable_name']).toLowerCase(), row['Value'] ?? '']));
  const file = status.get('binlog_snapshot_file') ?? '';
  return file === '' ? undefined : { file, offset: Number(status.get('binlog_snapshot_position')) };
}

/** Waits at most a second. The server adds a GTID to the executed ones after its engines have committed it. */
async function gtidCommitted(session: ServerSession, gtid: string): Promise<boolean> {
  const row = await session.first('SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 1) AS late', [gtid]);
  return row?.['late'] === '0';
}
