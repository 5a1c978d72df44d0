import type { PartRead } from './whole-log.ts';

/** How often somebody wanted to look at a thing (what failed at once, and again, counts once a second), and how often that could be done. */
export interface Looks {
  readonly tried: number;
  readonly done: number;
  /** Why the last one that failed did. */
  readonly trouble: string;
}

/** What the checker saw in a run. */
export interface Sight {
  /** By sink. */
  readonly sinks: Readonly<Record<string, Looks>>;
  /** Commits, markers and checkpoint, all of them at a time. */
  readonly books: Looks;
  /** Checkpoints that were compared. */
  readonly checkpoints: number;
  /** Messages of the log that lay before one of them. */
  readonly held: number;
  /** By sink: commits that were compared with a marker. */
  readonly commits: Readonly<Record<string, number>>;
  readonly parts: readonly PartRead[];
  /** Most memory of each process, in MB. */
  readonly peaks: readonly number[];
}

/** So many looks are possible in the shortest run, and such a share of those that were tried also where a server is away for most of it. */
const LEAST_LOOKS = 10;
const LEAST_SHARE = 0.05;
const LEAST_BOOKS = 4;
const LEAST_CHECKPOINTS = 3;

/** What was not looked at, or not enough to have seen anything. Pure. */
export function blindSpots({ sinks, books, checkpoints, held, commits, parts, peaks }: Sight): readonly string[] {
  const found: string[] = [];
  const require = (what: string, { tried, done, trouble }: Looks, least: number): void => {
    if (done >= least && done >= tried * LEAST_SHARE) return;
    found.push(`${what} seen in ${done} of ${tried} looks${trouble === '' ? '' : ` (${trouble})`}`);
  };
  for (const [name, looks] of Object.entries(sinks)) require(name, looks, LEAST_LOOKS);
  require('commits, markers and checkpoint', books, LEAST_BOOKS);
  if (checkpoints < LEAST_CHECKPOINTS) found.push(`${checkpoints} checkpoints compared with the log`);
  else if (held === 0) found.push('no message of the log lies before a checkpoint that was seen');
  for (const [name, count] of Object.entries(commits)) {
    if (count === 0) found.push(`no commit compared with a marker of ${name}`);
  }
  for (const [partition, { end, read }] of parts.entries()) {
    if (read < end) found.push(`partition ${partition} of the log read up to ${read} of ${end}`);
  }
  if (parts.every(({ end }) => end === 0)) found.push('the log held nothing that could be read');
  if (!peaks.some((mb) => mb > 0)) found.push('the memory of no process could be looked at');
  return found;
}
