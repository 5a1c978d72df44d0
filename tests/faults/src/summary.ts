import { type Missed, missedGoals, SEED_SECONDS } from './goals.ts';
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
  /** Seeds that took longer than they should; seconds. */
  readonly long: readonly { readonly seed: number; readonly seconds: number }[];
  /** Faults that were planned and not struck, by seed. They are not counted. */
  readonly dropped: readonly { readonly seed: number; readonly kinds: readonly string[] }[];
  /** Most memory that any process of MySync had, in MB. */
  readonly peakMb: number;
  /** Kinds of fault whose recovery did not meet its goal. */
  readonly missed: readonly Missed[];
  readonly recoverySeconds: Readonly<
    Record<string, { readonly p50: number; readonly p99: number; readonly count: number }>
  >;
}

/** `seedSeconds`: how long one may take. */
export function summarize(all: readonly SeedResult[], seedSeconds: number = SEED_SECONDS): Summary {
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
    long: results.filter(({ seconds }) => seconds > seedSeconds).map(({ seed, seconds }) => ({ seed, seconds })),
    dropped: results.flatMap(({ seed, dropped = [] }) => (dropped.length === 0 ? [] : [{ seed, kinds: dropped }])),
    peakMb: results.reduce((most, { peakMb = 0 }) => Math.max(most, peakMb), 0),
    missed: missedGoals(recoverySeconds),
    recoverySeconds,
  };
}

/** The last lines of a run, for people. */
export function linesOf(summary: Summary): readonly string[] {
  const { seeds, faults, rows, lost, wrong, backward, failed, suiteErrors, slow, long, dropped, peakMb, missed } =
    summary;
  const list = (what: string, of: readonly unknown[]): readonly string[] =>
    of.length === 0 ? [] : [`${what}: ${of.join(', ')}`];
  const numbers = `lost ${lost}, wrong ${wrong}, backward ${backward}`;
  return [
    `${seeds} seeds, ${faults} faults, ${rows} rows: ${numbers}; most memory of a process ${peakMb} MB`,
    ...list('failed', failed),
    ...list('ended by errors of the suite', suiteErrors),
    ...list('not within a second of the present', slow),
    ...list(
      'took longer than a seed should',
      long.map(({ seed, seconds }) => `${seed} (${seconds} s)`),
    ),
    ...list(
      'planned and not struck',
      dropped.map(({ seed, kinds }) => `${kinds.join(' and ')} (seed ${seed})`),
    ),
    ...missed.map(
      ({ kind, p99, goal, count }) => `goal missed: ${kind}, p99 ${p99} s of ${count}, is to be under ${goal} s`,
    ),
  ];
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
