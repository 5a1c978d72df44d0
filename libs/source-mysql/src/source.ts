/** The BinlogSource of MySQL and MariaDB. */
import { type Finding, MysyncError, type SourcePosition, type TableRef, type TableSchema } from '@mysync/core';
import { checkGrants } from './check/grants.ts';
import { checkResume } from './check/resume.ts';
import { checkRowImage } from './check/row-image.ts';
import { checkServerId } from './check/server-id.ts';
import { checkSettings, SETTINGS } from './check/settings.ts';
import { checkSpoolFolder } from './check/spool-folder.ts';
import { checkTables } from './check/tables.ts';
import { sourceErrors } from './errors.ts';
import { KeptHistory } from './history/kept-history.ts';
import { type MysqlSourceOptions, type ResolvedOptions, resolveOptions } from './options.ts';
import type {
  BinlogSource,
  ServerIdentity,
  Snapshot,
  SnapshotOptions,
  SourceItem,
  StartIntent,
  StreamOptions,
  TableFate,
  TableReader,
} from './port.ts';
import { currentSchemas } from './schema/current-schemas.ts';
import { listTables } from './schema/table-facts.ts';
import { openFirst } from './server/first-host.ts';
import { currentPosition, logFiles, replicaName } from './server/log-state.ts';
import { formatHost, type ServerSession } from './server/session.ts';
import { tableFates } from './snapshot/fates.ts';
import { openSnapshot } from './snapshot/snapshot.ts';
import { openTableReader } from './snapshot/table-reader.ts';
import { streamLog } from './stream/log-stream.ts';

const FIRST_OFFSET = 4;

export function createMysqlSource(options: MysqlSourceOptions): BinlogSource {
  return new MysqlSource(options);
}

class MysqlSource implements BinlogSource {
  readonly #options: ResolvedOptions;
  readonly #closed = new AbortController();
  readonly #history: KeptHistory;

  constructor(options: MysqlSourceOptions) {
    this.#options = resolveOptions(options);
    this.#history = new KeptHistory(this.#options);
  }

  async check(intent?: StartIntent): Promise<readonly Finding[]> {
    const resumes = typeof intent?.resume?.serverUuid === 'string';
    return await this.#with((session) => this.#findings(session, resumes, intent));
  }

  async identify({ resumes = false }: { resumes?: boolean } = {}): Promise<ServerIdentity> {
    return await this.#with(async (session) => {
      for (const finding of await this.#findings(session, resumes)) {
        if (finding.level !== 'error') continue;
        const entry = sourceErrors.entries[finding.code as keyof typeof sourceErrors.entries];
        const where = { host: formatHost(session.facts.host) };
        throw new MysyncError(finding.code, entry, { message: finding.message, remedy: finding.remedy, where });
      }
      const { uuid, flavor, version } = session.facts;
      return { uuid, flavor, version };
    });
  }

  async tableSchemas(): Promise<readonly TableSchema[]> {
    return await this.#with((session) => currentSchemas(session, this.#options));
  }

  async fates(tables: readonly TableRef[]): Promise<readonly TableFate[]> {
    return await this.#with((session) => tableFates(session, this.#options, tables));
  }

  async currentPosition(): Promise<SourcePosition> {
    return await this.#with(currentPosition);
  }

  async earliestPosition(): Promise<SourcePosition> {
    return await this.#with(async (session) => {
      const oldest = (await logFiles(session))[0];
      if (oldest === undefined) throw sourceErrors.SOURCE_BINLOG_OFF({ message: 'the server has no binary log' });
      return { file: oldest.file, offset: FIRST_OFFSET, gtidSet: '' };
    });
  }

  async snapshot(options: SnapshotOptions): Promise<Snapshot> {
    return await openSnapshot({
      ...options,
      source: this.#options,
      openSession: () => openFirst(this.#options),
      signal: AbortSignal.any([options.signal, this.#closed.signal]),
    });
  }

  async openTable(options: { table: TableRef; chunkRows: number; signal: AbortSignal }): Promise<TableReader> {
    const session = await openFirst(this.#options);
    try {
      const signal = AbortSignal.any([options.signal, this.#closed.signal]);
      return await openTableReader({ ...options, source: this.#options, session, signal });
    } catch (error) {
      session.close();
      throw error;
    }
  }

  stream(options: StreamOptions): AsyncIterable<readonly SourceItem[]> {
    return streamLog({
      source: this.#options,
      history: this.#history,
      openSession: () => openFirst(this.#options),
      from: options.from,
      knownTables: options.knownTables ?? [],
      ...(options.observer === undefined ? {} : { observer: options.observer }),
      signal: AbortSignal.any([options.signal, this.#closed.signal]),
    });
  }

  async settled(position: SourcePosition): Promise<void> {
    await this.#history.settled(position);
  }

  close(): Promise<void> {
    this.#closed.abort();
    return Promise.resolve();
  }

  /** `resumes`: a checkpoint is there. */
  async #findings(session: ServerSession, resumes: boolean, intent?: StartIntent): Promise<readonly Finding[]> {
    const settings = await session.variables(SETTINGS);
    const image = (settings.get('binlog_row_image') ?? '').toUpperCase();
    const tables = await listTables(session, this.#options.captures);
    return [
      ...checkSettings(session.facts, settings, this.#options.rowMetadata),
      checkRowImage(image, tables, this.#options.tableRule),
      ...(await checkGrants(session, tables, intent?.snapshot === true)),
      ...(await checkResume(this.#options, session, intent?.resume ?? null)),
      ...checkSpoolFolder(this.#options.spoolFolder),
      ...(await checkServerId(session, this.#options.serverId, replicaName(this.#options.name))),
      ...(await checkTables(session, { ...this.#options, image, resumes }, tables)),
    ];
  }

  async #with<T>(question: (session: ServerSession) => Promise<T>): Promise<T> {
    const session = await openFirst(this.#options);
    try {
      return await question(session);
    } finally {
      session.close();
    }
  }
}
