import { CACHE, runCommand, STOPPED, say, stopSignal } from './entry.ts';
import { FAULT_KINDS } from './fault-kinds.ts';
import { SEED_SECONDS } from './goals.ts';
import { longPlans } from './long-outages.ts';
import { MUTATIONS } from './mutations.ts';
import { DEFAULT_MINUTES, type FaultsOptions, focused, parseOptions, USAGE } from './options.ts';
import { MutationRun } from './run-mutations.ts';
import { runSuite } from './suite.ts';
import { exitStatus, linesOf, SUITE_ERROR, summarize } from './summary.ts';

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args, CACHE);
  if (options.list) {
    process.stdout.write(`${FAULT_KINDS.map(({ name }) => name).join('\n')}\n`);
    return 0;
  }
  if (options.mutations) {
    return await mutate(options);
  }
  const signal = stopSignal('stopping after this seed');
  const { longMinutes, rate, focus } = options;
  if (longMinutes === 0) focused(FAULT_KINDS, focus);
  const long =
    longMinutes > 0
      ? { plans: longPlans(longMinutes, rate, focus), longMinutes, results: longResults(longMinutes) }
      : {};
  const results = await runSuite({ ...options, ...long, folder: `${CACHE}/seeds`, say, signal });
  // an outage takes as long as it was told to
  const summary = summarize(results, longMinutes > 0 ? Number.POSITIVE_INFINITY : SEED_SECONDS);
  for (const line of linesOf(summary)) say(line);
  if (options.json) process.stdout.write(`${JSON.stringify(summary)}\n`);
  return exitStatus(summary);
}

async function mutate({ focus, rate, json }: FaultsOptions): Promise<number> {
  const run = new MutationRun({ mutations: focused(MUTATIONS, focus), rate, say });
  const signal = stopSignal('stopping after this seed of this mutation', () => run.stopAtOnce());
  const results = await run.play(signal);
  if (json) process.stdout.write(`${JSON.stringify({ mutations: results })}\n`);
  if (results.some(({ outcome }) => outcome === 'not caught')) return 1;
  if (signal.aborted) return STOPPED;
  return results.some(({ outcome }) => outcome === 'suite error') ? SUITE_ERROR : 0;
}

/** Shorter outages are no results of longer ones. */
function longResults(minutes: number): string {
  return `${CACHE}/long${minutes === DEFAULT_MINUTES ? '' : `-${minutes}`}.jsonl`;
}

runCommand(USAGE, main);
