import { fileURLToPath } from 'node:url';
import { FAULT_KINDS } from './fault-kinds.ts';
import { longPlans } from './long-outages.ts';
import { parseOptions, USAGE } from './options.ts';
import { runMutations } from './run-mutations.ts';
import { runSuite } from './suite.ts';
import { summarize } from './summary.ts';

const CACHE = fileURLToPath(new URL('../../../.cache/faults', import.meta.url));
const startedAt = performance.now();

function say(text: string): void {
  process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(5)} s  ${text}\n`);
}

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${USAGE}\n`);
    return 0;
  }
  const options = parseOptions(args, CACHE);
  if (options.list) {
    process.stdout.write(`${FAULT_KINDS.map(({ name }) => name).join('\n')}\n`);
    return 0;
  }
  if (options.mutations) {
    const caught = await runMutations(options.focus[0] ?? '', options.rate, say);
    if (options.json) process.stdout.write(`${JSON.stringify({ mutations: caught })}\n`);
    return caught.some(({ by }) => by === null) ? 1 : 0;
  }
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      say('stopping after this seed; once more to stop at once');
      process.once(signal, () => process.exit(130));
      stopping.abort();
    });
  }
  const { longMinutes, rate, focus } = options;
  const long = longMinutes > 0 ? { plans: longPlans(longMinutes, rate, focus), results: `${CACHE}/long.jsonl` } : {};
  const results = await runSuite({ ...options, ...long, folder: `${CACHE}/seeds`, say, signal: stopping.signal });
  const summary = summarize(results);
  if (options.json) process.stdout.write(`${JSON.stringify(summary)}\n`);
  else
    say(
      `${summary.seeds} seeds, ${summary.faults} faults, ${summary.rows} rows: lost ${summary.lost}, wrong ${summary.wrong}, backward ${summary.backward}${summary.failed.length === 0 ? '' : `; failed: ${summary.failed.join(', ')}`}`,
    );
  return summary.failed.length === 0 ? 0 : 1;
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
