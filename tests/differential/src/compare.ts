/** Holds a copied table against what the server said. */
import { formatTableRef } from '@mysync/core';
import type { CopiedRow } from './copy.ts';
import type { ExpectedTable } from './truth.ts';

const NULL = '\u0000NULL';
const SHOWN = 5;

/** What differs, in lines for people; none when nothing does. */
export function differences(expected: ExpectedTable, rows: ReadonlyMap<string, CopiedRow>): string[] {
  const name = formatTableRef(expected.ref);
  const names = expected.columns.map((column) => column.name);
  const there: string[][] = [];
  for (const row of rows.values()) {
    const has = row.schema.columns.map((column) => column.name);
    if (has.join('\0') !== names.join('\0')) {
      const values = row.values.map((value) =>
        value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value),
      );
      return [
        `${name}: the row ${values.join(' | ')} has the columns ${has.join(', ')} in place of ${names.join(', ')}`,
      ];
    }
    there.push(expected.columns.map(({ show }, i) => shown(row.values[i], show)));
  }
  const wanted = expected.rows.map((row) => row.map((cell) => cell ?? NULL));
  const missing = subtract(wanted, there);
  const tooMany = subtract(there, wanted);
  if (missing.length === 0 && tooMany.length === 0) return [];
  const lines = [
    `${name}: ${wanted.length} rows on the server, ${there.length} in the copy, ${missing.length} missing, ${tooMany.length} too many`,
  ];
  for (const row of missing.slice(0, SHOWN)) {
    const near = nearest(row, tooMany);
    if (near === undefined) lines.push(`  missing: ${text(row)}`);
    else {
      for (const [i, cell] of row.entries()) {
        if (near[i] === cell) continue;
        const column = expected.columns[i];
        lines.push(`  ${column?.name} (${column?.type}): server ${short(cell)}, copy ${short(near[i] ?? '')}`);
      }
    }
  }
  if (missing.length === 0) for (const row of tooMany.slice(0, SHOWN)) lines.push(`  too many: ${text(row)}`);
  return lines;
}

function shown(value: CopiedRow['values'][number], show: ExpectedTable['columns'][number]['show']): string {
  if (value === null) return NULL;
  return value === undefined ? '\u0000ABSENT' : show(value);
}

/** Rows of `a` that `b` does not have as often. */
function subtract(a: readonly string[][], b: readonly string[][]): string[][] {
  const counts = new Map<string, number>();
  for (const row of b) {
    const key = row.join('\u0001');
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return a.filter((row) => {
    const key = row.join('\u0001');
    const count = counts.get(key) ?? 0;
    counts.set(key, count - 1);
    return count <= 0;
  });
}

function nearest(row: readonly string[], others: readonly string[][]): readonly string[] | undefined {
  const same = (other: readonly string[]): number => other.filter((cell, i) => cell === row[i]).length;
  let best: readonly string[] | undefined;
  for (const other of others) if (best === undefined || same(other) > same(best)) best = other;
  return best !== undefined && same(best) > 0 ? best : undefined;
}

function short(cell: string): string {
  return cell.length > 300 ? `${cell.slice(0, 300)}… (${cell.length})` : cell;
}

function text(row: readonly string[]): string {
  return row.map((cell) => (cell.length > 40 ? `${cell.slice(0, 40)}…` : cell)).join(' | ');
}
