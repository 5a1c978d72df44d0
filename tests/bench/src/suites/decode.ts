/**
 * Readers of the log over the same ranges, one after the other, in turns: ours to encoded messages, others to values, and a socket that
 * throws everything away. A figure counts only if the reader saw every row: their number, and the sum of a column, are the server's own.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Bench } from '../bench.ts';
import { runChild } from '../child.ts';
import type { DecodedLog } from '../children/decode-check.ts';
import { loadTable, logPosition, tableFacts } from '../load.ts';
import { type LogClientRun, type LogRange, runLogClient } from '../log-client.ts';
import { loadText } from '../report.ts';
import { median, type Result, round } from '../result.ts';
import { DATABASE, JSON_DATABASE, SINGLES_DATABASE } from '../table.ts';

type ClientName = 'mysync' | 'zongji' | 'go-mysql' | 'java-client' | 'socket';

const OURS: ClientName = 'mysync';
/** Clients that run in Node, and their files. */
const NODE: Partial<Record<ClientName, string>> = { mysync: 'decode', zongji: 'zongji', socket: 'socket' };
const CLIENTS: readonly ClientName[] = ['mysync', 'zongji', 'go-mysql', 'java-client', 'socket'];
/** How many times the speed of each is asked for, per CPU second. */
const GOALS: Readonly<Record<string, number>> = {
  zongji: 4,
  'go-mysql': 2,
  'java-client': 2,
  socket: 0.2,
  'zongji-single': 3,
};
/** What is read after the rows that all suites share, by the ends of the names: so much fewer rows. */
const FURTHER = [
  { suffix: '-json', database: JSON_DATABASE, share: 2, what: 'rows with a JSON document' },
  { suffix: '-single', database: SINGLES_DATABASE, share: 5, what: 'rows, each in a transaction of its own' },
] as const;
const PEERS = fileURLToPath(new URL('../../peers/peers.sh', import.meta.url));

export async function decodeSuite(bench: Bench): Promise<void> {
  const { rows } = bench.options;
  const commands = new Map<ClientName, readonly string[]>();
  for (const name of CLIENTS) {
    if (!['', ...FURTHER.map((each) => each.suffix)].some((suffix) => bench.wants(`${name}${suffix}`))) continue;
    const command = await commandOf(bench, name);
    if (command !== null) commands.set(name, command);
  }
  if (commands.size === 0) return;
  const bulk = await bench.loaded();
  const [file = '', offset] = bulk.split(':');
  await measure(bench, commands, '', await rangeOf(bench, rows, { file, offset: Number(offset) }), DATABASE);
  const address = await bench.address();
  for (const { suffix, database, share, what } of FURTHER) {
    if (![...commands.keys()].some((name) => bench.wants(`${name}${suffix}`))) continue;
    // loaded only now: the socket stops where the log ends
    const start = await logPosition(address, bench.options.server);
    const count = Math.ceil(rows / share);
    bench.say(`loading ${count} ${what}`);
    const transactionRows = suffix === '-single' ? 1 : bench.options.transactionRows;
    await loadTable(address, { database, rows: count, transactionRows });
    await measure(bench, commands, suffix, await rangeOf(bench, count, start), database);
  }
}

async function rangeOf(bench: Bench, rows: number, from: { file: string; offset: number }): Promise<LogRange> {
  const address = await bench.address();
  return { flavor: bench.options.server, ...address, ...from, rows };
}

/** null, and told, where it cannot be had. */
async function commandOf(bench: Bench, name: ClientName): Promise<readonly string[] | null> {
  const file = NODE[name];
  if (file !== undefined) return [process.execPath, fileURLToPath(new URL(`../children/${file}.js`, import.meta.url))];
  bench.say(`building ${name}`);
  return await new Promise((resolve) => {
    execFile('bash', [PEERS, name], (error, stdout, stderr) => {
      if (error === null) resolve(stdout.trim().split('\n'));
      else {
        bench.skip(name, stderr.trim().split('\n').at(-1) ?? String(error));
        resolve(null);
      }
    });
  });
}

async function measure(
  bench: Bench,
  commands: ReadonlyMap<ClientName, readonly string[]>,
  suffix: string,
  range: LogRange,
  database: string,
): Promise<void> {
  const wanted = [...commands].filter(([name]) => bench.wants(`${name}${suffix}`));
  if (wanted.length === 0) return;
  const facts = await tableFacts(await bench.address(), database);
  const decoded = wanted.some(([name]) => name === OURS) ? await decode(bench, range, facts) : undefined;
  const runs = new Map<string, LogClientRun[]>();
  for (let turn = 1; turn <= bench.options.runs; turn += 1) {
    for (const [name, command] of wanted) {
      const label = `${name}${suffix}`;
      const earlier = runs.get(label) ?? [];
      if (earlier.length < turn - 1) continue; // it was skipped
      try {
        const run = await runLogClient(profiled(bench, command, label), range);
        checkRun(name, run, facts, decoded);
        runs.set(label, [...earlier, run]);
        bench.say(`${label}: ${run.end.cpuSeconds.toFixed(2)} CPU s (load ${loadText()})`);
      } catch (error) {
        if (name === OURS || earlier.length > 0) throw error;
        bench.skip(label, error instanceof Error ? error.message : String(error));
      }
    }
  }
  const results = new Map([...runs].map(([label, of]) => [label, bench.add(resultOf(label, of))]));
  const ours = results.get(`${OURS}${suffix}`);
  if (ours === undefined) return;
  for (const [label, result] of results)
    if (result !== ours) bench.compare(ours, result, GOALS[label.replace(/-json$/, '')]);
  if (decoded === undefined || suffix !== '') return;
  const { debeziumBytes: debezium, debeziumWithSchemaBytes: debeziumWithSchema } = decoded;
  bench.messageBytes = { mysync: Math.round(decoded.bytes / decoded.rows), debezium, debeziumWithSchema };
}

function profiled(bench: Bench, command: readonly string[], label: string): readonly string[] {
  const { profile } = bench.options;
  const [program = '', ...args] = command;
  if (profile === '' || program !== process.execPath) return command;
  return [program, '--cpu-prof', `--cpu-prof-dir=${profile}`, `--cpu-prof-name=${label}.cpuprofile`, ...args];
}

/** Our messages, read by a decoder that is not measured. */
async function decode(bench: Bench, range: LogRange, facts: { rows: number; sum: number }): Promise<DecodedLog> {
  const { answer } = await runChild<DecodedLog>('decode-check', range);
  if (answer.rows !== facts.rows || answer.sum !== facts.sum) {
    throw new Error(`the messages say ${JSON.stringify(answer)}, the table ${JSON.stringify(facts)}`);
  }
  bench.say(`${Math.round(answer.bytes / answer.rows)} bytes per message, key included`);
  return answer;
}

function checkRun(
  name: ClientName,
  { end }: LogClientRun,
  facts: { rows: number; sum: number },
  decoded: DecodedLog | undefined,
): void {
  // The socket knows nothing of rows: it ended where the server said that its log ends.
  if (name === 'socket') return;
  const isRight = end.rows === facts.rows && (name === OURS ? end.bytes === decoded?.bytes : end.sum === facts.sum);
  if (!isRight) throw new Error(`${name} read ${JSON.stringify(end)}, the table says ${JSON.stringify(facts)}`);
}

/** Medians. */
function resultOf(name: string, runs: readonly LogClientRun[]): Result {
  const [first] = runs;
  return {
    name,
    rows: first?.end.rows ?? 0,
    cpuSeconds: round(median(runs.map((run) => run.end.cpuSeconds)), 3),
    wallSeconds: round(median(runs.map((run) => run.wallSeconds))),
    rssMb: median(runs.map((run) => run.usage.rssMb)),
    startCpuSeconds: round(median(runs.map((run) => run.start.cpuSeconds)), 3),
    warmRowsPerCpuSecond: Math.round(
      median(
        runs.map(
          ({ quarter, end }) => (end.rows - quarter.rows) / Math.max(0.001, end.cpuSeconds - quarter.cpuSeconds),
        ),
      ),
    ),
  };
}
