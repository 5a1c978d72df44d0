import { mkdir } from 'node:fs/promises';
import { Bench } from './bench.ts';
import { type BenchOptions, parseOptions, type SuiteName, USAGE } from './options.ts';
import { bytesText, latencyTable, loadText, machineText, ratioTable, resultTable, skippedText } from './report.ts';
import { applySuite } from './suites/apply.ts';
import { decodeSuite } from './suites/decode.ts';
import { endToEndSuite } from './suites/end-to-end.ts';
import { latencySuite } from './suites/latency.ts';
import { publishSuite } from './suites/publish.ts';

const RUN: Readonly<Record<SuiteName, (bench: Bench) => Promise<void>>> = {
  decode: decodeSuite,
  publish: publishSuite,
  apply: applySuite,
  'end-to-end': endToEndSuite,
  latency: latencySuite,
};

const startedAt = performance.now();

function say(text: string): void {
  process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(4)} s  ${text}\n`);
}

/** The exit status. A suite that failed takes nothing from the others' figures. */
async function run(bench: Bench, options: BenchOptions): Promise<number> {
  const before = loadText();
  let status = 0;
  for (const suite of options.suites) {
    try {
      await RUN[suite](bench);
    } catch (error) {
      say(`${suite} FAILED: ${error instanceof Error ? error.message : String(error)}`);
      status = 1;
    }
  }
  const { results, ratios, skipped, messageBytes } = bench;
  if (results.length === 0 && skipped.length === 0 && status === 0)
    throw new Error(`no measurement is called '${options.only}'`);
  if (options.json) {
    const suite = options.suites.length === 1 ? options.suites[0] : options.suites.join(',');
    const more = { ...(ratios.length > 0 ? { ratios } : {}), skipped, messageBytes };
    process.stdout.write(`${JSON.stringify({ suite, server: options.server, results, ...more })}\n`);
    return status;
  }
  const parts = [resultTable(results), ratioTable(ratios), latencyTable(results), bytesText(messageBytes)];
  const tables = [...parts, skippedText(skipped)].filter((text) => text !== '');
  process.stdout.write(`${tables.join('\n')}\n${machineText()}; load before ${before}, after ${loadText()}\n`);
  return status;
}

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${USAGE}\n`);
    return 0;
  }
  const options = parseOptions(args);
  if (options.profile !== '') await mkdir(options.profile, { recursive: true });
  const bench = new Bench(options, say);
  const stop = new Promise<never>((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => reject(new Error(signal)));
  });
  try {
    return await Promise.race([run(bench, options), stop]);
  } finally {
    await bench[Symbol.asyncDispose]();
  }
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
