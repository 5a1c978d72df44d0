/** One connection's worth of the log: what is opened for it, what comes out of it as items, and what is closed with it. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type BinlogPosition, formatBinlogPosition, type SourcePosition, type TableRef } from '@mysync/core';
import { unlessAborted } from '@mysync/flow';
import type { LogEvent } from '../binlog/log-event.ts';
import { BinlogConnection } from '../connection/binlog-connection.ts';
import { FIRST_OFFSET } from '../connection/far-place.ts';
import type { SilenceLimit } from '../connection/silence-limit.ts';
import { sourceErrors } from '../errors.ts';
import { DdlHorizon } from '../history/ddl-horizon.ts';
import { Definitions } from '../history/definitions.ts';
import type { HistoryIndex } from '../history/history-index.ts';
import type { ResolvedOptions } from '../options.ts';
import type { SourceItem, StreamObserver } from '../port.ts';
import { PartialRows } from '../reread/partial-rows.ts';
import { RowLookup } from '../reread/row-lookup.ts';
import { CascadeBook, type CascadeLog } from '../schema/cascade-book.ts';
import { Charsets } from '../schema/charsets.ts';
import { TableBook } from '../schema/table-book.ts';
import { listTables, listViews } from '../schema/table-facts.ts';
import { logsCascades, NATIVE_FOREIGN_KEYS } from '../server/dialect.ts';
import { LazySession } from '../server/lazy-session.ts';
import { checkPosition, currentPosition, logFiles, replicaName } from '../server/log-state.ts';
import { freeServerId } from '../server/server-id.ts';
import { formatHost, type ServerFacts, ServerSession } from '../server/session.ts';
import type { RowsTranscriber } from '../transcribe/rows-transcriber.ts';
import { EventUnfolder } from '../unfold/event-unfolder.ts';
import { PartialUpdates } from '../unfold/partial-updates.ts';
import { PreparedSearch } from '../xa/prepared-search.ts';
import { XaHolder } from '../xa/xa-holder.ts';
import { TransactionAssembler } from './transaction-assembler.ts';
import { TransactionSpool } from './transaction-spool.ts';

const BATCH_ITEMS = 1024;
/** How long an orderly end waits for the server. */
const RELEASE_MS = 2000;

/**
 * What the server knows us by: the same for all connections of a stream, so that a new one ends the one that the server has not
 * missed yet (MySQL by the UUID, MariaDB by the id).
 */
export interface ReplicaIdentity {
  readonly uuid: string;
  serverId: number | undefined;
}

export interface LogRunOptions {
  readonly source: ResolvedOptions;
  /** A session with the first host that answers. */
  openSession(): Promise<ServerSession>;
  readonly from: SourcePosition;
  /** Of the server that was read before; undefined: any. */
  readonly serverUuid: string | undefined;
  readonly history: HistoryIndex;
  /** These five are shared by all connections of the stream. */
  readonly transcriber: RowsTranscriber;
  readonly identity: ReplicaIdentity;
  readonly silence: SilenceLimit;
  /** By key. */
  readonly known: Map<string, TableRef>;
  readonly cascadeLog: CascadeLog;
  readonly observer?: StreamObserver;
  readonly signal: AbortSignal;
}

export class LogRun {
  readonly #options: LogRunOptions;
  readonly #spool: TransactionSpool;
  readonly #lookups: LazySession;
  #rows: RowLookup | undefined;
  #connection: BinlogConnection | undefined;
  #assembler: TransactionAssembler | undefined;
  #unfolder: EventUnfolder | undefined;
  #xa: XaHolder | undefined;
  #search: PreparedSearch | undefined;
  #serverUuid: string | undefined;
  #hasBegun = false;

  constructor(options: LogRunOptions) {
    this.#options = options;
    this.#serverUuid = options.serverUuid;
    const { spoolBytes, spoolFolder } = options.source;
    this.#spool = new TransactionSpool({ memoryBytes: spoolBytes, folder: spoolFolder });
    this.#lookups = new LazySession(options.openSession);
  }

  /** Everything before it was handed over. */
  get boundary(): SourcePosition {
    return this.#assembler?.boundary ?? this.#options.from;
  }

  /** undefined while it is not known. */
  get serverUuid(): string | undefined {
    return this.#serverUuid;
  }

  /** Monotonic time at which the server was last heard; undefined where the log was not asked for. */
  get heardMs(): number | undefined {
    return this.#connection?.heardMs;
  }

  async *items(): AsyncGenerator<readonly SourceItem[]> {
    const { signal, observer } = this.#options;
    let isTold = false;
    // a server that does not answer is waited for for long: a stop is not
    const assembler = await unlessAborted(this.#open(), signal, () => this.close());
    const connection = this.#connection as BinlogConnection;
    let batch: SourceItem[] = [];
    while (!signal.aborted) {
      let failure: unknown;
      let isBehind = true;
      try {
        const question = this.#read(batch);
        if (question === null) isBehind = false;
        else if (question !== undefined) await question;
      } catch (error) {
        failure = error ?? new Error('a failure without an error');
      }
      if (!isTold && this.#hasBegun) {
        isTold = true;
        observer?.reads();
      }
      if (failure === undefined && !assembler.drainFew(batch)) {
        for (const items of assembler.drain()) {
          // a long list is handed over as it is
          if (batch.length > 0 && items.length > BATCH_ITEMS / 2) {
            yield batch;
            batch = [];
          }
          if (batch.length === 0) batch = items;
          else for (const item of items) batch.push(item);
          if (batch.length < BATCH_ITEMS && !assembler.readsFile) continue;
          yield batch;
          batch = [];
          // reading a file waits for nothing: everybody else gets a turn, and the collector of what was handed over
          await nextTurn();
        }
      }
      if (failure === undefined && isBehind && batch.length < BATCH_ITEMS) continue;
      const keepalive = failure === undefined && !isBehind ? assembler.takeKeepalive() : undefined;
      if (keepalive !== undefined) batch.push(keepalive);
      if (batch.length > 0) {
        yield batch;
        batch = [];
      }
      if (failure !== undefined) throw failure;
      if (!isBehind) await connection.wait(signal);
    }
  }

  /**
   * What has arrived, into the batch: until it is full, or a transaction is too long for it. A promise where something must be awaited first; null when there is
   * nothing more to read.
   */
  #read(batch: SourceItem[]): Promise<void> | undefined | null {
    const connection = this.#connection as BinlogConnection;
    const unfolder = this.#unfolder as EventUnfolder;
    const assembler = this.#assembler as TransactionAssembler;
    while (batch.length < BATCH_ITEMS) {
      const event = connection.next();
      if (event === undefined) return null;
      this.#hasBegun = true;
      const unfolded = unfolder.unfold(event);
      const question = unfolded === undefined ? assembler.process(event) : this.#processAll(assembler, unfolded);
      if (question !== undefined) return question;
      if (assembler.ready && !assembler.drainFew(batch)) return undefined;
    }
    return undefined;
  }

  /** One event stands for at most one transaction: its end is the last of them. */
  async #processAll(
    assembler: TransactionAssembler,
    events: Iterable<LogEvent> | AsyncIterable<LogEvent>,
  ): Promise<void> {
    for await (const event of events) {
      const question = assembler.process(event);
      if (question !== undefined) await question;
    }
  }

  async close(): Promise<void> {
    await this.#release();
    await this.#connection?.close();
    this.#xa?.close();
    this.#search?.close();
    this.#rows?.close();
    this.#lookups.close();
    this.#spool.close();
  }

  /**
   * An idle server sees that we are gone at its next heartbeat only, and our id stays taken until then: it is told. When it does not
   * answer soon, that is as well.
   */
  async #release(): Promise<void> {
    const threadId = this.#connection?.threadId;
    if (threadId === undefined) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, RELEASE_MS);
    });
    const told = this.#lookups.use((session) => session.query(`KILL ${threadId}`)).catch(() => undefined);
    await Promise.race([told, late]);
    clearTimeout(timer);
  }

  async #open(): Promise<TransactionAssembler> {
    const { source, silence, from, identity, history } = this.#options;
    const session = await this.#options.openSession();
    try {
      const { facts } = session;
      if (this.#serverUuid !== undefined) requireServer(session, this.#serverUuid);
      this.#serverUuid = facts.uuid;
      const start = await reachable(session, from);
      const charsets = await Charsets.load(session);
      const listed = await listTables(session, source.captures);
      const views = await listViews(session);
      const names = await session.variables(['lower_case_table_names', NATIVE_FOREIGN_KEYS]);
      const logEnd = await currentPosition(session);
      const serverId = await freeServerId(session, identity.serverId, replicaName(source.name));
      identity.serverId = serverId;
      const dump = {
        host: facts.host,
        credentials: source,
        hostName: replicaName(source.name),
        heartbeatMs: source.heartbeatMs,
        queueBytes: source.queueBytes,
        silenceMs: silence.ms,
        clock: source.clock,
      };
      this.#connection = await BinlogConnection.open({
        ...dump,
        serverId,
        replicaUuid: identity.uuid,
        start:
          start.file === ''
            ? { kind: 'gtids', flavor: facts.flavor, gtidSet: from.gtidSet }
            : { kind: 'place', ...start },
      });
      silence.opened(source.clock.monotonic());
      /** Beside the stream itself, so under another id; ends where the log does. */
      const openBeside = async (place: BinlogPosition): Promise<BinlogConnection> =>
        await BinlogConnection.open({
          ...dump,
          serverId: await this.#lookups.use((open) => freeServerId(open, undefined, dump.hostName)),
          replicaUuid: randomUUID(),
          start: { kind: 'place', ...place },
          stopsAtEnd: true,
        });
      const foldsNames = names.get('lower_case_table_names') !== '0';
      // MySQL's table maps say everything, and nobody notes its statements then
      const mapsTellAll = source.rowMetadata === 'full' && facts.flavor === 'mysql';
      if (mapsTellAll) await history.forgetDefinitions();
      const newHorizon = (): DdlHorizon =>
        new DdlHorizon({
          signal: this.#options.signal,
          foldsNames,
          statementText: (bytes, collationId) => charsets.statementText(bytes, collationId, this.#lookups),
          open: openBeside,
        });
      const definitions = mapsTellAll
        ? undefined
        : new Definitions({
            ...source,
            ...facts,
            typesOnly: source.rowMetadata === 'full',
            index: history,
            horizon: newHorizon(),
            session: this.#lookups,
            charsets,
            foldsNames,
          });
      // few tables need them: nothing is read ahead for the others
      if (definitions?.typesOnly) await definitions.learnFirst(logEnd, listed, newHorizon());
      else if (start.file !== '') await definitions?.learnFirst(start, listed);
      const { cascadeLog } = this.#options;
      if (!logsCascades(facts, names)) cascadeLog.hidesRows = true;
      const cascades = new CascadeBook({
        session: this.#lookups,
        log: cascadeLog,
        logEnd,
        foldsNames,
        captures: (ref) => book.captures(ref),
      });
      const book = new TableBook({
        ...source,
        flavor: facts.flavor,
        session: this.#lookups,
        charsets,
        definitions,
        known: this.#options.known,
        listed,
        views,
      });
      const memory = { limitBytes: source.spoolBytes, usedBytes: 0, folder: source.spoolFolder };
      // on MariaDB few statements need them; here what comes from now on is behind the answer
      if (cascadeLog.hidesRows && facts.flavor === 'mysql') await cascades.ask();
      const search = new PreparedSearch({
        from: start,
        memory,
        signal: this.#options.signal,
        files: () => this.#lookups.use(async (open) => (await logFiles(open)).map((entry) => entry.file)),
        open: openBeside,
      });
      this.#search = search;
      this.#xa = new XaHolder({ memory, findPrepared: (xid) => search.find(xid) });
      // MariaDB has none
      const partial = facts.flavor === 'mysql' ? new PartialUpdates((ref) => book.captures(ref)) : undefined;
      this.#unfolder = new EventUnfolder({ from: start, xa: this.#xa, partial });
      source.logger.info(
        { host: formatHost(facts.host), position: formatBinlogPosition(start), serverId, machine: hostname() },
        'reading the log',
      );
      const rows = new RowLookup({
        source,
        signal: this.#options.signal,
        openSession: () => sameServer(source, facts),
      });
      this.#rows = rows;
      this.#assembler = new TransactionAssembler({
        ...source,
        flavor: facts.flavor,
        serverUuid: facts.uuid,
        from: start.file === from.file ? { ...from, ...start } : { ...start, gtidSet: from.gtidSet },
        book,
        spool: this.#spool,
        partialRows: new PartialRows({ ...source, lookup: rows }),
        transcriber: this.#options.transcriber,
        definitions,
        foldsNames,
        cascades,
      });
      return this.#assembler;
    } catch (error) {
      // who stopped meanwhile has closed what was there by then
      if (this.#options.signal.aborted) await this.close();
      throw error;
    } finally {
      session.close();
    }
  }
}

/** What is read again is read from the server whose log is read: another one may be behind it. */
async function sameServer(source: ResolvedOptions, facts: ServerFacts): Promise<ServerSession> {
  const session = await ServerSession.open(source, facts.host);
  try {
    requireServer(session, facts.uuid);
    return session;
  } catch (error) {
    session.close();
    throw error;
  }
}

function requireServer({ facts }: ServerSession, uuid: string): void {
  if (facts.uuid === uuid) return;
  throw sourceErrors.SOURCE_SERVER_CHANGED({
    message: `${formatHost(facts.host)} is another server than the one that was read before`,
    where: { host: formatHost(facts.host), before: uuid, now: facts.uuid },
  });
}

/** Throws when the position is not in the log. */
async function reachable(session: ServerSession, position: SourcePosition): Promise<BinlogPosition> {
  if (position.file === '') return { file: '', offset: FIRST_OFFSET };
  await checkPosition(session, position);
  return { file: position.file, offset: Math.max(position.offset, FIRST_OFFSET) };
}
