/** What both commands of this room begin and end with. */
import { fileURLToPath } from 'node:url';

/** Where results are kept, and what runs write. */
export const CACHE = fileURLToPath(new URL('../../../.cache/faults', import.meta.url));
const startedAt = performance.now();

/** A line of progress, with the seconds since the start. */
export function say(text: string): void {
  process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(5)} s  ${text}\n`);
}

/** Aborts at the first signal to stop, and says so; the second one ends the process at once. */
export function stopSignal(what: string): AbortSignal {
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      say(`${what}; once more to stop at once`);
      process.once(signal, () => process.exit(130));
      stopping.abort();
    });
  }
  return stopping.signal;
}

/** Runs a command with this process' arguments, and ends the process with its code. `usage` answers --help. */
export function runCommand(usage: string, command: (args: readonly string[]) => Promise<number>): void {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${usage}\n`);
    return;
  }
  command(args).then(
    (code) => process.exit(code),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
      process.exit(1);
    },
  );
}
