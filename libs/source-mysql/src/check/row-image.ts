/** Findings about rows that the log would not hold whole. */
import { type Finding, formatTableRef, type TableRef } from '@mysync/core';
import type { ResolvedOptions } from '../options.ts';
import type { KeyChoice } from '../schema/key-choice.ts';
import type { ServerFacts } from '../server/session.ts';
import { finding } from './settings.ts';

const CODE = 'SOURCE_ROW_IMAGE_NOT_FULL';

/** `image`: the server's binlog_row_image, in upper case; sessions may have their own. */
export function checkRowImage(
  image: string,
  tables: readonly TableRef[],
  tableRule: ResolvedOptions['tableRule'],
): Finding {
  const found = `binlog_row_image is ${image === '' ? 'not set' : image}`;
  if (image === 'FULL') return finding('ok', CODE, found);
  const halting = tables.filter((ref) => tableRule(ref).onPartialRow === 'halt').map(formatTableRef);
  if (halting.length === 0) {
    const cost = 'rows that the log does not hold whole are read again, which costs a query for each event';
    return finding('warning', CODE, `${found}: ${cost}`);
  }
  const names =
    halting.length > 3 ? `${halting.slice(0, 3).join(', ')} and ${halting.length - 3} more` : halting.join();
  return finding(
    'error',
    CODE,
    `${found}, and a row of ${names} that the log does not hold whole is to halt the reader`,
  );
}

export interface ImageOfTable {
  readonly image: string;
  readonly facts: ServerFacts;
  readonly name: string;
  readonly key: KeyChoice;
  readonly partitionBy: readonly string[];
}

/** Changes whose images would not tell which record they change: only reading the whole table again mends those. */
export function checkTableImage({ image, facts, name, key, partitionBy }: ImageOfTable): Finding[] {
  if (image !== 'MINIMAL') return [];
  const unknown = partitionBy.filter((column) => !key.columns.includes(column));
  if (key.rule !== 'row-hash' && unknown.length > 0) {
    const message = `binlog_row_image is MINIMAL: updates and deletions of ${name} do not hold ${unknown.join(', ')}, which chooses the partition (partitionBy): each of them has the whole table read again (onUnseenChange)`;
    return [finding('warning', CODE, message)];
  }
  // MariaDB's images are whole where there is no key (seen on 10.11)
  if (key.rule === 'row-hash' && facts.flavor === 'mysql') {
    const message = `binlog_row_image is MINIMAL and table ${name} has no key: an INSERT that leaves out columns has the whole table read again (onUnseenChange)`;
    return [finding('warning', CODE, message)];
  }
  return [];
}
