import { parseArgs } from 'node:util';
import type { TransportName } from './setting.ts';

export interface FaultsOptions {
  readonly from: number;
  readonly to: number;
  readonly transport: TransportName;
  /** Seeds whose result is in the file are not run again. */
  readonly resume: boolean;
  readonly json: boolean;
  /** Rows per second of the load. */
  readonly rate: number;
  /** Only kinds of fault whose name holds one of these. */
  readonly focus: readonly string[];
  readonly results: string;
  readonly stopAtFailure: boolean;
  /** Logs of seeds that passed stay, too. */
  readonly keep: boolean;
  readonly mutations: boolean;
  /** Minutes of the long outages; 0: seeds are run. */
  readonly longMinutes: number;
  readonly list: boolean;
}

/** Of an outage. */
export const DEFAULT_MINUTES = 10;
const MOST_MINUTES = 10_000;

/** Rows per second. */
export const DEFAULT_RATE = 1000;

export const USAGE = `npm run faults -- [options]
  --seeds A..B         the seeds to run (default 1..3); one number: only that one
  --transport NAME     log or kafka (default log)
  --resume             leave out seeds whose result is in the file, and go on
  --json               end with one line of JSON
  --rate N             rows per second of the load (default ${DEFAULT_RATE})
  --focus A,B          only kinds of fault whose name holds one of these texts; --list names them
  --results FILE       results are appended to it (default .cache/faults/TRANSPORT.jsonl)
  --keep               keep the logs of seeds that passed, too
  --stop-at-failure    end with the first seed that fails
  --long [--minutes N] the outages of ten minutes, in place of seeds; with --focus only those
  --mutations          breaks one line of MySync at a time in a copy, and shows the seed that catches it;
                       with --focus only those whose name holds one of the texts
  --list               print the kinds of fault
Exit status: 0; 1 when a seed failed or a mutation was not caught; 2 when nothing did, but the suite itself could not do what it had to.`;

/** What a focus asks for: names that hold one of its texts; all without one. Throws where a text is in none: a run of nothing would look like a proof. */
export function focused<T extends { readonly name: string }>(
  all: readonly T[],
  focus: readonly string[],
): readonly T[] {
  const vain = focus.filter((text) => !all.some(({ name }) => name.includes(text)));
  if (vain.length > 0) {
    throw new Error(
      `--focus: nothing holds '${vain.join("' or '")}'; there is: ${all.map(({ name }) => name).join(' | ')}`,
    );
  }
  return focus.length === 0 ? all : all.filter(({ name }) => focus.some((text) => name.includes(text)));
}

export function parseOptions(args: readonly string[], cache: string): FaultsOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string', default: '1..3' },
      transport: { type: 'string', default: 'log' },
      resume: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      focus: { type: 'string', default: '' },
      rate: { type: 'string', default: String(DEFAULT_RATE) },
      results: { type: 'string', default: '' },
      keep: { type: 'boolean', default: false },
      'stop-at-failure': { type: 'boolean', default: false },
      mutations: { type: 'boolean', default: false },
      long: { type: 'boolean', default: false },
      minutes: { type: 'string' },
      list: { type: 'boolean', default: false },
    },
  });
  const seeds = /^(\d+)(?:\.\.(\d+))?$/.exec(values.seeds);
  const from = Number(seeds?.[1] ?? 0);
  const to = Number(seeds?.[2] ?? from);
  if (from < 1 || to < from) throw new Error(`--seeds is A..B, for example 1..200, not '${values.seeds}'`);
  const { transport } = values;
  if (transport !== 'log' && transport !== 'kafka') throw new Error(`--transport is log or kafka, not '${transport}'`);
  const rate = Number(values.rate);
  if (!(rate >= 100 && rate <= 100_000)) throw new Error(`--rate is a number from 100 on, not '${values.rate}'`);
  const minutes = Number(values.minutes ?? DEFAULT_MINUTES);
  if (!(minutes > 0 && minutes <= MOST_MINUTES)) {
    throw new Error(`--minutes is a number above 0, at most ${MOST_MINUTES}, not '${values.minutes}'`);
  }
  if (values.minutes !== undefined && !values.long) throw new Error('--minutes is of --long, which is not given');
  if (values.long && values.mutations) throw new Error('--long and --mutations are two runs: give one of them');
  return {
    from,
    to,
    transport,
    resume: values.resume,
    json: values.json,
    rate,
    focus: values.focus.split(',').filter((text) => text !== ''),
    results: values.results === '' ? `${cache}/${transport}.jsonl` : values.results,
    stopAtFailure: values['stop-at-failure'],
    keep: values.keep,
    mutations: values.mutations,
    longMinutes: values.long ? minutes : 0,
    list: values.list,
  };
}
