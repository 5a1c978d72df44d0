import { CACHE, runCommand, say, stopSignal } from './entry.ts';
import { soak } from './soak.ts';
import { parseSoakOptions, SOAK_USAGE } from './soak-options.ts';
import { SUITE_ERROR } from './summary.ts';

async function main(args: readonly string[]): Promise<number> {
  const { json, ...flags } = parseSoakOptions(args);
  const signal = stopSignal('coming to an end');
  const { complaints, suiteErrors, ...result } = await soak({ ...flags, folder: CACHE, say, signal });
  for (const complaint of complaints) say(complaint);
  for (const error of suiteErrors) say(`suite error: ${error}`);
  if (json) process.stdout.write(`${JSON.stringify(result)}\n`);
  else {
    const { rss, mapped, handles, lag, log, checkpoint, ...counts } = result;
    process.stderr.write(`${JSON.stringify(counts)}\n`);
    for (const [kind, figures] of Object.entries({ rss, mapped, handles, lag, log, checkpoint })) {
      for (const [of, { median, most, growth, allowed, flat }] of Object.entries(figures)) {
        const verdict = flat ? 'flat' : `NOT FLAT, allowed ${allowed}`;
        say(`${kind} of ${of}: median ${median}, most ${most}, grew by ${growth}: ${verdict}`);
      }
    }
  }
  if (complaints.length === 0 && suiteErrors.length > 0) return SUITE_ERROR;
  return result.flat && complaints.length === 0 ? 0 : 1;
}

runCommand(SOAK_USAGE, main);
