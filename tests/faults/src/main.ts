import { CACHE, runCommand, say, stopSignal } from './entry.ts';
import { FAULT_KINDS } from './fault-kinds.ts';
import { longPlans } from './long-outages.ts';
import { parseOptions, USAGE } from './options.ts';
import { runMutations } from './run-mutations.ts';
import { runSuite } from './suite.ts';
import { summarize } from './summary.ts';

async function main(args: readonly string[]): Promise<number> {
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
  const signal = stopSignal('stopping after this seed');
  const { longMinutes, rate, focus } = options;
  const long = longMinutes > 0 ? { plans: longPlans(longMinutes, rate, focus), results: `${CACHE}/long.jsonl` } : {};
  const results = await runSuite({ ...options, ...long, folder: `${CACHE}/seeds`, say, signal });
  const summary = summarize(results);
  if (options.json) process.stdout.write(`${JSON.stringify(summary)}\n`);
  else
    say(
      `${summary.seeds} seeds, ${summary.faults} faults, ${summary.rows} rows: lost ${summary.lost}, wrong ${summary.wrong}, backward ${summary.backward}${summary.failed.length === 0 ? '' : `; failed: ${summary.failed.join(', ')}`}`,
    );
  return summary.failed.length === 0 ? 0 : 1;
}

runCommand(USAGE, main);
