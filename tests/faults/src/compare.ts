import { readTable, type TextRow, textConnection } from '@mysync/harness';
import { TABLES } from './load.ts';
import type { Scene } from './scene.ts';
import type { SinkEye } from './sink-eye.ts';

export interface Verdict {
  /** Rows that are missing, or stand as they were before some change. */
  lost: number;
  /** Rows that are not in the source, or hold what the source never said. */
  wrong: number;
  /** The first few, in words. */
  readonly examples: string[];
}

const MOST_EXAMPLES = 8;

/** The tables against every sink, row by row: each row of the source exactly once, and nothing else. */
export async function compareAll(scene: Scene, eyes: readonly SinkEye[]): Promise<Verdict> {
  const verdict: Verdict = { lost: 0, wrong: 0, examples: [] };
  const sql = await textConnection(scene.address);
  try {
    for (const [table, keyColumns] of Object.entries(TABLES)) {
      const source = await readTable(sql, scene.database, table, keyColumns);
      for (const eye of eyes) {
        compareTable(`${eye.name} ${table}`, source, await eye.readAll(table, keyColumns), verdict);
      }
    }
  } finally {
    await sql.end();
  }
  return verdict;
}

export function compareTable(
  what: string,
  source: ReadonlyMap<string, TextRow>,
  copy: ReadonlyMap<string, Readonly<Record<string, unknown>>>,
  verdict: Verdict,
): void {
  const tell = (text: string): void => {
    if (verdict.examples.length < MOST_EXAMPLES) verdict.examples.push(`${what} ${text}`);
  };
  for (const [key, row] of source) {
    const other = copy.get(key);
    if (other === undefined) {
      verdict.lost += 1;
      tell(`${key} is missing`);
      continue;
    }
    const columns = new Set([...Object.keys(row), ...Object.keys(other)]);
    const differing = [...columns].filter((column) => !sameText(row[column], other[column]));
    if (differing.length === 0) continue;
    if (Number(other['n']) < Number(row['n'])) verdict.lost += 1;
    else verdict.wrong += 1;
    tell(`${key} differs in ${differing.map((c) => `${c}: ${row[c]} there, ${String(other[c])} here`).join('; ')}`);
  }
  for (const [key, other] of copy) {
    if (source.has(key)) continue;
    verdict.wrong += 1;
    tell(`${key} is not in the source: ${JSON.stringify(other).slice(0, 120)}`);
  }
}

/** NULL is a field that is not there. */
function sameText(text: string | null | undefined, value: unknown): boolean {
  if (text === null || text === undefined) return value === undefined || value === null;
  return text === (typeof value === 'string' ? value : String(value));
}
