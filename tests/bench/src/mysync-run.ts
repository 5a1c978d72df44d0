/** Runs the real command in a process of its own until its work is done, and measures that process. */
import { MysyncProcess } from '@mysync/harness';
import { type Usage, usageOf } from './meter.ts';
import { type Result, round } from './result.ts';

const MIN_POLL_MS = 10;
const MAX_POLL_MS = 500;
/** Without any progress for so long a measurement is given up. */
const STALL_MS = 60_000;

export interface MysyncMeasurement {
  readonly name: string;
  /** Words of the command, without `--config`. */
  readonly verb: readonly string[];
  readonly configFile: string;
  readonly rows: number;
  /** The counter that says how far it is; its sum over all labels. */
  readonly counter: string;
  readonly profile: string;
}

export class MeasuredMysync implements AsyncDisposable {
  readonly process: MysyncProcess;
  readonly #startedAt = performance.now();

  constructor(options: {
    readonly verb: readonly string[];
    readonly configFile: string;
    readonly profile: string;
    readonly name: string;
  }) {
    const { verb, configFile, profile, name } = options;
    // The harness asks for source maps, which cost a slower start; who runs the command does not.
    const nodeArgs = ['--no-enable-source-maps'];
    if (profile !== '') {
      nodeArgs.push('--cpu-prof', `--cpu-prof-dir=${profile}`, `--cpu-prof-name=${name}.cpuprofile`);
    }
    this.process = new MysyncProcess([...verb, '--config', configFile], { nodeArgs });
  }

  get wallSeconds(): number {
    return (performance.now() - this.#startedAt) / 1000;
  }

  usage(): Usage {
    return usageOf(this.process.pid);
  }

  /** The CPU that went by until it was ready to work, and where it tells its metrics. */
  async started(): Promise<{ readonly cpuSeconds: number; readonly metricsUrl: string }> {
    try {
      await this.process.logged(/"msg":"started"/);
    } catch (cause) {
      throw new Error(`mysync did not start: ${this.process.stderr.slice(-3000)}`, { cause });
    }
    const { cpuSeconds } = this.usage();
    const line = this.process.stderr.split('\n').find((text) => text.includes('telemetry listens')) ?? '{}';
    const { port } = JSON.parse(line) as { port?: number };
    return { cpuSeconds, metricsUrl: `http://127.0.0.1:${port}/metrics` };
  }

  /** SIGTERM; fails when it does not end in order. */
  async stop(): Promise<void> {
    const exit = await this.process.stop();
    if (exit.code !== 0) {
      throw new Error(`mysync ended with ${exit.code ?? exit.signal}: ${this.process.stderr.slice(-3000)}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.process.running) await this.process.kill();
  }
}

/** CPU, wall and memory from the start of the process to the moment when the counter reached `rows`. */
export async function measureMysync(measurement: MysyncMeasurement): Promise<Result> {
  const { name, rows, counter } = measurement;
  await using mysync = new MeasuredMysync(measurement);
  const { cpuSeconds: startCpuSeconds, metricsUrl } = await mysync.started();
  await untilCounted(mysync.process, metricsUrl, counter, rows);
  const { wallSeconds } = mysync;
  const { cpuSeconds, rssMb } = mysync.usage();
  await mysync.stop();
  return { name, rows, cpuSeconds: round(cpuSeconds), wallSeconds: round(wallSeconds), rssMb, startCpuSeconds };
}

/** Asks rarely at first and often near the end, so that asking costs little and the end is seen at once. */
async function untilCounted(process: MysyncProcess, url: string, counter: string, rows: number): Promise<void> {
  const start = performance.now();
  let last = 0;
  let movedAt = start;
  for (;;) {
    if (!process.running) throw new Error(`mysync ended by itself: ${process.stderr.slice(-3000)}`);
    const done = sumOf(await (await fetch(url)).text(), counter);
    if (done >= rows) return;
    const now = performance.now();
    if (done > last) movedAt = now;
    else if (now - movedAt > STALL_MS)
      throw new Error(`nothing moves at ${done} of ${rows}: ${process.stderr.slice(-3000)}`);
    last = done;
    const leftMs = done === 0 ? MAX_POLL_MS : ((rows - done) * (now - start)) / done / 2;
    await new Promise((resolve) => setTimeout(resolve, Math.max(MIN_POLL_MS, Math.min(MAX_POLL_MS, leftMs))));
  }
}

function sumOf(metrics: string, counter: string): number {
  let sum = 0;
  for (const line of metrics.split('\n')) {
    if (line.startsWith(`${counter}{`)) sum += Number(line.slice(line.lastIndexOf(' ') + 1));
  }
  return sum;
}
