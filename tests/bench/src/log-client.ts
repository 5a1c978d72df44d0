/** A client that reads a range of the log in a process of its own, told as peers/README.md says: both ends. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { type Usage, usageOf } from './meter.ts';

export interface LogRange {
  readonly flavor: 'mariadb' | 'mysql';
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly file: string;
  readonly offset: number;
  readonly rows: number;
}

/** What a client has read when it reached a stage, and the CPU of its whole process until then. */
export interface Stage {
  readonly stage: 'start' | 'quarter' | 'end';
  readonly rows: number;
  /** Of the integer column that all clients add up; 0 from one that does not look into rows. */
  readonly sum: number;
  readonly cpuSeconds: number;
  /** Of what was read or made, where the client counts them. */
  readonly bytes?: number;
}

export interface LogClientRun {
  readonly start: Stage;
  readonly quarter: Stage;
  readonly end: Stage;
  readonly usage: Usage;
  readonly wallSeconds: number;
}

/** Without its end for so long a client is given up. */
const LIMIT_MS = 300_000;

/** Runs a client to its end and measures it there. */
export async function runLogClient(command: readonly string[], range: LogRange): Promise<LogClientRun> {
  const { flavor, host, port, user, password, file, offset, rows } = range;
  const words = [flavor, host, port, user, password, file, offset, rows].map(String);
  const [program = '', ...args] = command;
  const startedAt = performance.now();
  const child = spawn(program, [...args, ...words], { stdio: ['pipe', 'pipe', 'pipe'] });
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  let complaint = '';
  child.stderr.on('data', (data: Buffer) => {
    complaint = `${complaint}${data.toString()}`.slice(-2000);
  });
  child.stdin.on('error', () => undefined);
  try {
    const stages = new Map<string, Stage>();
    const failed = new Promise<never>((_, reject) => child.once('error', reject));
    for await (const line of lines(child.stdout, failed)) {
      if (!line.startsWith('{"stage"')) continue;
      const stage = JSON.parse(line) as Stage;
      stages.set(stage.stage, stage);
      if (stage.stage === 'end') break;
    }
    const wallSeconds = (performance.now() - startedAt) / 1000;
    const [start, quarter, end] = [stages.get('start'), stages.get('quarter'), stages.get('end')];
    if (start === undefined || quarter === undefined || end === undefined) {
      throw new Error(`it ended early: ${complaint.trim().split('\n').slice(0, 4).join(' | ')}`);
    }
    return { start, quarter, end, usage: usageOf(child.pid ?? 0), wallSeconds };
  } finally {
    clearTimeout(timer);
    // The end of its input ends it by itself, so that it writes its profile.
    child.stdin.end();
    const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(late);
  }
}

async function* lines(output: NodeJS.ReadableStream, failed: Promise<never>): AsyncGenerator<string> {
  const reader = createInterface({ input: output });
  const iterator = reader[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), failed]);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    reader.close();
    output.resume();
  }
}

/** In a client of ours: what it is asked for. */
export function clientRange(): LogRange {
  const [flavor, host, port, user, password, file, offset, rows] = process.argv.slice(2);
  return {
    flavor: flavor === 'mysql' ? 'mysql' : 'mariadb',
    host: host ?? '',
    port: Number(port),
    user: user ?? '',
    password: password ?? '',
    file: file ?? '',
    offset: Number(offset),
    rows: Number(rows),
  };
}

/** In a client of ours: the lines it tells. */
export class Stages {
  readonly #wanted: number;
  #told: Stage['stage'] | undefined;

  constructor(wanted: number) {
    this.#wanted = wanted;
    this.tell('start', { rows: 0, sum: 0 });
  }

  /** True when that was all. */
  reached(rows: number, sum: number, bytes: number): boolean {
    if (this.#told === 'end') return true;
    if (this.#told === 'start' && rows >= this.#wanted / 4) this.tell('quarter', { rows, sum, bytes });
    if (rows >= this.#wanted) this.tell('end', { rows, sum, bytes });
    return rows >= this.#wanted;
  }

  /** `cpuSeconds` of an earlier moment, where it is one. */
  tell(stage: Stage['stage'], read: Omit<Stage, 'stage' | 'cpuSeconds'>, cpuSeconds = processCpuSeconds()): void {
    this.#told = stage;
    process.stdout.write(`${JSON.stringify({ stage, ...read, cpuSeconds })}\n`);
  }

  /** Resolves when the client has been measured. */
  async measured(): Promise<void> {
    await new Promise<void>((resolve) => process.stdin.once('close', () => resolve()).resume());
  }
}

/** Of all threads. */
export function processCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
