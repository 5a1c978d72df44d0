import { parseArgs } from 'node:util';

export const SUITES = ['decode', 'publish', 'apply', 'end-to-end', 'latency'] as const;
export type SuiteName = (typeof SUITES)[number];

export interface BenchOptions {
  readonly suites: readonly SuiteName[];
  readonly server: 'mariadb' | 'mysql';
  readonly rows: number;
  /** Rows that a transaction of the loaded table holds. */
  readonly transactionRows: number;
  /** Names of measurements that hold this text; '' for all. */
  readonly only: string;
  /** How often each reader of the log is measured; the median counts. */
  readonly runs: number;
  /** How long the latency is measured, after 3 s that are not. */
  readonly seconds: number;
  /** Changes per second while the latency is measured. */
  readonly rate: number;
  readonly json: boolean;
  /** Folder for CPU profiles of the measured processes; '' for none. */
  readonly profile: string;
}

export const USAGE = `npm run bench -- [SUITE ...] [options]
  SUITE                decode, publish, apply, end-to-end, latency (default: all)
  --server NAME        whose log is read: mariadb or mysql (default mariadb)
  --rows N             rows of the table (default 300000; 4000000 for decode alone, whose start and compiling weigh little then)
  --transaction-rows N rows per transaction (default 100)
  --only TEXT          only measurements whose name holds this text
  --runs N             how often each reader of the log is measured in decode (default 3; 1 for decode alone)
  --seconds N          how long latency is measured (default 20)
  --rate N             changes per second meanwhile (default 500)
  --profile FOLDER     writes a CPU profile of each measured process there
  --json               nothing but one line of JSON at the end`;

/** Throws an Error with one clear sentence for a flag that is wrong. */
export function parseOptions(args: readonly string[]): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      server: { type: 'string', default: 'mariadb' },
      rows: { type: 'string' },
      'transaction-rows': { type: 'string', default: '100' },
      only: { type: 'string', default: '' },
      runs: { type: 'string' },
      seconds: { type: 'string', default: '20' },
      rate: { type: 'string', default: '500' },
      profile: { type: 'string', default: '' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) throw new Error(USAGE);
  const suites = positionals.map((name) => {
    const suite = SUITES.find((each) => each === name);
    if (suite === undefined) throw new Error(`there is no suite '${name}': ${SUITES.join(', ')}`);
    return suite;
  });
  const number = (flag: string, text: string, max: number): number => {
    const value = Number(text);
    if (!(Number.isInteger(value) && value > 0 && value <= max)) {
      throw new Error(`--${flag} is a whole number from 1 to ${max}, not '${text}'`);
    }
    return value;
  };
  const { server } = values;
  const isLong = suites.length === 1 && suites[0] === 'decode';
  if (server !== 'mariadb' && server !== 'mysql') throw new Error(`--server is mariadb or mysql, not '${server}'`);
  return {
    // In their order, whatever was asked for: latency adds rows that the others do not count.
    suites: suites.length === 0 ? SUITES : SUITES.filter((each) => suites.includes(each)),
    server,
    rows: number('rows', values.rows ?? (isLong ? '4000000' : '300000'), 100_000_000),
    transactionRows: number('transaction-rows', values['transaction-rows'], 1_000_000),
    only: values.only,
    runs: number('runs', values.runs ?? (isLong ? '1' : '3'), 100),
    seconds: number('seconds', values.seconds, 3_600),
    rate: number('rate', values.rate, 100_000),
    json: values.json,
    profile: values.profile,
  };
}
