import { parseArgs } from 'node:util';
import type { Flavor } from './catalogue.ts';

export type Metadata = 'full' | 'minimal';

/** A server that histories run on. */
export interface ServerKind {
  readonly name: string;
  readonly flavor: Flavor;
  /** For its script in tests/servers. */
  readonly env: Readonly<Record<string, string>>;
  /** It logs updates without the generated columns, whatever the row image. */
  readonly omitsGenerated: boolean;
}

export const SERVERS: readonly ServerKind[] = [
  { name: 'mariadb', flavor: 'mariadb', env: {}, omitsGenerated: false },
  { name: 'mariadb-11.8', flavor: 'mariadb', env: { MARIADB_VERSION: '11.8' }, omitsGenerated: true },
  { name: 'mysql', flavor: 'mysql', env: {}, omitsGenerated: false },
];

const NAMES = SERVERS.map(({ name }) => name).join(', ');

export interface DifferentialOptions {
  readonly from: number;
  readonly to: number;
  readonly servers: readonly ServerKind[];
  /** What the server tells of tables in its log: all; or as little as it can, so that the schema history has to know. */
  readonly metadata: Metadata;
  readonly json: boolean;
  /** Name of a server instance that is left running; '' for one of its own. */
  readonly instance: string;
  /** Folder for the statements of failing seeds; '' for none. */
  readonly statements: string;
}

export const USAGE = `npm run differential -- --seeds A..B [options]
  --seeds A..B         the histories to run, each a function of its number (also: one number)
  --server NAME        mariadb, mariadb-11.8 or mysql (default: all, one after the other)
  --metadata NAME      full or minimal: binlog_row_metadata of the server (default: full)
  --statements FOLDER  writes the statements of each failing seed there
  --instance NAME      uses this instance of tests/servers and leaves it running (default: one of its own, removed at the end)
  --json               nothing but one line of JSON at the end: {"seeds","rows","failed":[{"seed","server","why","again"}]}`;

/** Throws an Error with one clear sentence for a flag that is wrong. */
export function parseOptions(args: readonly string[]): DifferentialOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string' },
      server: { type: 'string' },
      metadata: { type: 'string', default: 'full' },
      statements: { type: 'string', default: '' },
      instance: { type: 'string', default: '' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) throw new Error(USAGE);
  const range = /^(\d{1,9})(?:\.\.(\d{1,9}))?$/.exec(values.seeds ?? '');
  const from = Number(range?.[1]);
  const to = Number(range?.[2] ?? range?.[1]);
  if (range === null || from > to) {
    throw new Error(`--seeds is A..B with whole numbers, A not above B, not '${values.seeds ?? ''}'\n${USAGE}`);
  }
  const servers = SERVERS.filter(({ name }) => values.server === undefined || values.server === name);
  if (servers.length === 0) throw new Error(`--server is one of ${NAMES}, not '${values.server}'`);
  if (values.metadata !== 'full' && values.metadata !== 'minimal') {
    throw new Error(`--metadata is full or minimal, not '${values.metadata}'`);
  }
  return {
    from,
    to,
    metadata: values.metadata,
    servers,
    json: values.json,
    instance: values.instance,
    statements: values.statements,
  };
}
