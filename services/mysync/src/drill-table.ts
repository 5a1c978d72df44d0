/** The table that a drill changes: whose it is, and that source and sink carry it. */
import { type Config, plainTable } from '@mysync/config';
import {
  formatTableRef,
  isMysyncError,
  silentLogger,
  systemClock,
  type TableRef,
  type TableSchema,
} from '@mysync/core';
import { DrillTable, drillErrors } from '@mysync/drill';
import { type createMysqlSource, openFirst, type ServerSession } from '@mysync/source-mysql';
import { required, sourceOptions } from './compose.ts';
import { type CommandContext, usageError } from './context.ts';
import { commandErrors } from './errors.ts';
import { readGiven } from './names.ts';

export interface DrillTableOptions {
  readonly table: string;
  readonly user?: string;
  readonly passwordFile?: string;
}

export async function requireMapped(
  binlog: ReturnType<typeof createMysqlSource>,
  sink: { accepts(ref: TableRef): boolean },
  ref: TableRef,
): Promise<TableSchema> {
  const captured = await binlog.tableSchemas();
  const schema = captured.find(({ database, table: name }) => database === ref.database && name === ref.table);
  if (schema !== undefined && sink.accepts(ref)) return schema;
  const message =
    schema !== undefined
      ? `the sink has no rule for ${formatTableRef(ref)}`
      : `the source does not capture ${formatTableRef(ref)}`;
  throw drillErrors.DRILL_TABLE_UNMAPPED({ message, where: { table: formatTableRef(ref) } });
}

export function drillTableOf(context: CommandContext, text: string): TableRef {
  const ref = plainTable(text);
  if (ref !== null) return ref;
  const details = { message: `--table is '${text}'`, remedy: 'Allowed: DATABASE.TABLE.', where: { option: '--table' } };
  usageError(context, commandErrors.COMMAND_VALUE_INVALID(details));
}

export async function openDrillTable(
  context: CommandContext,
  config: Config,
  source: string,
  ref: TableRef,
  { user, passwordFile }: DrillTableOptions,
): Promise<DrillTable> {
  if (passwordFile !== undefined && user === undefined) {
    const message = '--password-file is given without --user: whose password it is, is not said';
    usageError(
      context,
      commandErrors.COMMAND_INVALID({ message, remedy: 'Add --user, or leave out --password-file.' }),
    );
  }
  const given = passwordFile === undefined ? '' : (await readGiven(context, '--password-file', passwordFile)).trimEnd();
  const { hosts, tls, ...own } = sourceOptions(config, source, silentLogger);
  const { connectionTimeoutMs } = required(config.sources, source);
  const login = user === undefined ? { user: own.user, password: own.password } : { user, password: given };
  const openSession = (): Promise<ServerSession> => openFirst({ hosts, tls, connectionTimeoutMs, ...login });
  return new DrillTable({
    openSession: user === undefined ? openSession : () => asGivenUser(openSession, ref),
    user: login.user,
    table: ref,
    clock: systemClock,
  });
}

/** The source's own remedy would tell of the source's user. */
async function asGivenUser(open: () => Promise<ServerSession>, ref: TableRef): Promise<ServerSession> {
  try {
    return await open();
  } catch (cause) {
    if (!isMysyncError(cause, 'SOURCE_ACCESS_DENIED')) throw cause;
    throw drillErrors.DRILL_TABLE_DENIED({
      message: cause.message,
      where: { ...cause.where, table: formatTableRef(ref) },
      remedy: 'Correct --user and the password in --password-file.',
      cause: cause.cause,
    });
  }
}
