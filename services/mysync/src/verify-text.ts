/** What `mysync verify` tells people: of each table as soon as it is compared. */
import { formatTableRef, type MysyncError, type TableRef } from '@mysync/core';
import { type Difference, type StandingReason, type TableReport, verifierErrors } from '@mysync/verifier';
import { isWithheld } from '@mysync/writer';
import { count, duration } from './output.ts';

/** A captured table of the sink of which nothing is known. */
export interface UncomparedTable {
  readonly table: TableRef;
  /** null: the command ended before. */
  readonly error: MysyncError | null;
}

export interface LostDeletionsReport {
  /** As good as any other now. */
  readonly mended: readonly number[];
  /** Rows that are gone from the source may still stand in the sink. */
  readonly standing: readonly { readonly partition: number; readonly why: StandingReason }[];
}

/** Differences that the text form lists, per table. */
const MAX_LISTED = 20;
const COUNTS = ['rows', 'equal', 'different', 'missing', 'extra', 'unsettled', 'repaired'] as const;
const COUNT_CHARACTERS = 9;

/** Lines with one width for all tables, which are told one by one. */
export class VerifyText {
  readonly #sink: string;
  readonly #source: string;
  readonly #nameCharacters: number;

  constructor(sink: string, source: string, tables: readonly TableRef[]) {
    this.#sink = sink;
    this.#source = source;
    this.#nameCharacters = Math.max('table'.length, ...tables.map((table) => formatTableRef(table).length));
  }

  head(): string {
    return `sink ${this.#sink} of ${this.#source}:\n${this.#line('table', COUNTS, '')}`;
  }

  table(report: TableReport): string {
    const name = formatTableRef(report.table);
    const more = [
      duration(report.seconds),
      ...(report.expired > 0 ? [`${report.expired} expired`] : []),
      ...(report.changing > 0 ? [`${count(report.changing, 'row')} changed at every look`] : []),
    ].join(', ');
    const lines = [
      this.#line(
        name,
        COUNTS.map((each) => String(report[each])),
        more,
      ),
    ];
    const listed = report.differences.slice(0, MAX_LISTED);
    for (const difference of listed) {
      const { kind, target, fields } = difference;
      const what = fields.length === 0 ? '' : `: ${fields.join(', ')}`;
      lines.push(`  ${name} ${target}: ${kind}${what}${this.#outcome(difference)}\n`);
    }
    const rest = report.different + report.missing + report.extra + report.unsettled - listed.length;
    if (rest > 0) lines.push(`  ${name}: ${rest} more (--json lists up to 1000)\n`);
    return lines.join('');
  }

  uncompared({ table, error }: UncomparedTable): string {
    const name = formatTableRef(table);
    if (error === null) return `  ${name}: NOT COMPARED: the command ended before\n`;
    return `  ${name}: NOT COMPARED: ${error.toString().replaceAll('\n', '\n  ')}\n`;
  }

  lostDeletions({ mended, standing }: LostDeletionsReport): string {
    const what = '  deletions that the log had forgotten';
    const text = standing.map(
      ({ partition, why }) =>
        `${what}: partition ${partition} may still show deleted rows: ${WHY[why]}; then mysync verify --repair --sink ${this.#sink} again\n`,
    );
    if (mended.length > 0) {
      text.unshift(`${what}: partitions ${mended.join(', ')} are mended, no deleted row is left\n`);
    }
    return text.join('');
  }

  #line(name: string, counts: readonly string[], more: string): string {
    const cells = [name.padEnd(this.#nameCharacters), ...counts.map((each) => each.padEnd(COUNT_CHARACTERS)), more];
    return `${`  ${cells.join('  ')}`.trimEnd()}\n`;
  }

  #outcome({ repaired, hindrance }: Difference): string {
    if (repaired) return ' (repaired)';
    if (hindrance === null) return '';
    const why = `${hindrance.code}: ${hindrance.reason}`;
    if (hindrance.kind === 'refused') {
      return `\n    not repaired: ${why}; mend what stands in the way, then repair again`;
    }
    if (isWithheld(hindrance)) {
      return `\n    its changes are set aside: ${why}; mysync verify --repair --sink ${this.#sink} writes it from the source and releases it`;
    }
    const id = `${this.#source}/${hindrance.partition}/${hindrance.offset}`;
    return `\n    its changes are set aside: ${why}; mend what stands in the way, then mysync dlq retry ${id} --sink ${this.#sink}`;
  }
}

const WHY: Readonly<Record<StandingReason, string>> = {
  uncompared: 'not every table of the sink was compared: mend what stands in the way of those that were not',
  'rows-left': 'rows are left that may be gone from the source: mend what stands in their way',
  'passed-again': 'its writer passed such deletions again meanwhile, or stands before them',
  busy: 'its writer moved the applied marker each time that it was to be changed',
  doubt: 'the store may have lost what it had confirmed meanwhile',
};

/** The word is not said while a table cannot be compared: its deleted rows would show, and nothing would remove them. */
export function unreadable(tables: readonly UncomparedTable[]): MysyncError {
  const names = tables.map(({ table }) => formatTableRef(table)).join(', ');
  return verifierErrors.VERIFY_TABLES_UNREADABLE({
    message: `these captured tables of the sink cannot be compared: ${names}`,
    where: { tables: names },
    cause: tables[0]?.error,
  });
}
