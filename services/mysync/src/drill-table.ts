/** The table that a drill changes: whose it is, and that source and sink carry it. */
import { type Config, parseHost, plainTable } from '@mysync/config';
import { formatTableRef, systemClock, type TableRef } from '@mysync/core';
import { DrillTable, drillErrors } from '@mysync/drill';
import { type createMysqlSource, secureOptions } from '@mysync/source-mysql';
import { MYSQL_PORT, required, sqlTls } from './compose.ts';
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
): Promise<void> {
  const captured = await binlog.tableSchemas();
  const isCaptured = captured.some(({ database, table: name }) => database === ref.database && name === ref.table);
  if (isCaptured && sink.accepts(ref)) return;
  const message = isCaptured
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
  const { hosts, user: own, password, tls } = required(config.sources, source);
  const given = passwordFile === undefined ? '' : (await readGiven(context, '--password-file', passwordFile)).trimEnd();
  const address = parseHost(hosts[0] ?? '', MYSQL_PORT);
  return new DrillTable({
    ...address,
    user: user ?? own,
    password: user === undefined ? (password?.reveal() ?? '') : given,
    ...(tls === undefined ? {} : { secure: secureOptions(sqlTls(tls), address) }),
    table: ref,
    clock: systemClock,
  });
}
