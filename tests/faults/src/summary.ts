import type { SeedResult } from './run-seed.ts';

export interface Summary {
  readonly seeds: number;
  readonly faults: number;
  readonly rows: number;
  readonly lost: number;
  readonly wrong: number;
  readonly backward: number;
  readonly failed: readonly number[];
  /** Seeds that ended by an error of the suite: they are in no other figure, and are to be run again. */
  readonly suiteErrors: readonly number[];
  /** Seeds in which the sinks followed, but not within a second. */
  readonly slow: readonly number[];
  readonly recoverySeconds: Readonly<
    Record<string, { readonly p50: number; readonly p99: number; readonly count: number }>
  >;
}

export function summarize(all: readonly SeedResult[]): Summary {
  const results = all.filter(({ outcome }) => outcome !== 'suite error');
  const sum = (of: (result: SeedResult) => number): number => results.reduce((total, result) => total + of(result), 0);
  const times = new Map<string, number[]>();
  for (const { faults } of results) {
    for (const { kind, recoverySeconds } of faults) {
      if (recoverySeconds !== null) times.set(kind, [...(times.get(kind) ?? []), recoverySeconds]);
    }
  }
  const recoverySeconds = Object.fromEntries(
    [...times].sort().map(([kind, list]) => {
      list.sort((a, b) => a - b);
      return [kind, { p50: quantile(list, 0.5), p99: quantile(list, 0.99), count: list.length }];
    }),
  );
  return {
    seeds: results.length,
    faults: sum(({ faults }) => faults.length),
    rows: sum(({ rows }) => rows),
    lost: sum(({ lost }) => lost),
    wrong: sum(({ wrong }) => wrong),
    backward: sum(({ backward }) => backward),
    failed: results.filter(({ outcome }) => outcome === 'failed').map(({ seed }) => seed),
    suiteErrors: all.filter(({ outcome }) => outcome === 'suite error').map(({ seed }) => seed),
    slow: results.filter(({ slow }) => (slow ?? []).length > 0).map(({ seed }) => seed),
    recoverySeconds,
  };
}

/** Of a run whose suite could not do what it had to, and that found nothing. */
export const SUITE_ERROR = 2;

export function exitStatus({ failed, suiteErrors }: Pick<Summary, 'failed' | 'suiteErrors'>): number {
  if (failed.length > 0) return 1;
  return suiteErrors.length > 0 ? SUITE_ERROR : 0;
}

/** The smallest value that so large a part of the sorted list does not exceed. */
function quantile(sorted: readonly number[], part: number): number {
  const value = sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0;
  return Math.round(value * 100) / 100;
}
