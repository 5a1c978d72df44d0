import { fileURLToPath } from 'node:url';
import { soak } from './soak.ts';
import { parseSoakOptions, SOAK_USAGE } from './soak-options.ts';

const CACHE = fileURLToPath(new URL('../../../.cache/faults', import.meta.url));
const startedAt = performance.now();

function say(text: string): void {
  process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(5)} s  ${text}\n`);
}

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${SOAK_USAGE}\n`);
    return 0;
  }
  const { json, ...flags } = parseSoakOptions(args);
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      say('coming to an end; once more to stop at once');
      process.once(signal, () => process.exit(130));
      stopping.abort();
    });
  }
  const { complaints, ...result } = await soak({ ...flags, folder: CACHE, say, signal: stopping.signal });
  for (const complaint of complaints) say(complaint);
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
  return result.flat && complaints.length === 0 ? 0 : 1;
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
