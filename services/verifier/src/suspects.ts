import type { RowKey } from '@mysync/core';
import type { RowVerdict } from '@mysync/sink';
import type { DifferenceKind } from './report.ts';
import { rowText, type SourceRecord } from './source-rows.ts';

/** A row that did not look right. */
export interface Suspect {
  readonly target: string;
  readonly key: RowKey;
}

export interface Finding extends Suspect {
  readonly kind: DifferenceKind;
  readonly verdict: RowVerdict;
}

/** What a round saw of a suspect. */
export type Sighting =
  | { readonly row: SourceRecord; readonly verdict: RowVerdict }
  /** The source has no such row (any more); the verdict's version is that of what the sink has. */
  | { readonly row: null; readonly verdict: RowVerdict };

/**
 * Tells differences from changes under way.
 *
 * Between two rounds everything that was committed before the second has arrived. So where a round sees a difference, and the next one sees the same
 * row in the source and the same record in the sink, no change under way can explain it. It must be seen three times, for the sake of a row
 * that changed and changed back between two looks.
 *
 * A record that was written anew between two looks, again and again, is no longer the one that looked wrong: the row is hot.
 */
export class Suspects {
  readonly #open = new Map<
    string,
    { readonly suspect: Suspect; text: string; times: number; last: Sighting | null; moves: number }
  >();
  readonly #found: Finding[] = [];
  readonly #right = new Set<string>();
  readonly #hot = new Set<string>();

  constructor(suspects: readonly Suspect[]) {
    for (const suspect of suspects)
      this.#open.set(suspect.target, { suspect, text: '', times: 0, last: null, moves: 0 });
  }

  get open(): readonly Suspect[] {
    return [...this.#open.values()].map(({ suspect }) => suspect);
  }

  get found(): readonly Finding[] {
    return this.#found;
  }

  /** Targets that turned out to be right. */
  get right(): ReadonlySet<string> {
    return this.#right;
  }

  /** Of rows that changed at every look, and whose record followed: hot, not wrong, and not seen right. */
  get hot(): ReadonlySet<string> {
    return this.#hot;
  }

  see(target: string, sighting: Sighting): void {
    const entry = this.#open.get(target);
    if (entry === undefined) return;
    const kind = kindOf(sighting);
    if (kind === null) {
      this.#open.delete(target);
      this.#right.add(target);
      return;
    }
    const text = `${sighting.row === null ? '' : rowText(sighting.row)} ${kind} ${sighting.verdict.version}`;
    if (entry.last !== null && entry.last.verdict.version !== sighting.verdict.version) entry.moves++;
    if (entry.moves >= HOT_MOVES) {
      this.#open.delete(target);
      this.#hot.add(target);
      return;
    }
    entry.times = entry.text === text ? entry.times + 1 : 1;
    entry.text = text;
    entry.last = sighting;
    if (entry.times < SAME_TIMES) return;
    this.#open.delete(target);
    this.#found.push({ ...entry.suspect, kind, verdict: sighting.verdict });
  }

  /** Those still open changed whenever they were looked at, while the sink's record did not follow. */
  giveUp(): void {
    for (const { suspect, last } of this.#open.values()) {
      const verdict = last?.verdict ?? { state: 'different', version: null, fields: [] };
      this.#found.push({ ...suspect, kind: 'unsettled', verdict });
    }
    this.#open.clear();
  }
}

const SAME_TIMES = 3;
const HOT_MOVES = 3;

function kindOf({ row, verdict }: Sighting): DifferenceKind | null {
  if (row === null) return verdict.state === 'missing' ? null : 'extra';
  if (verdict.state === 'different' || verdict.state === 'missing') return verdict.state;
  return null;
}
