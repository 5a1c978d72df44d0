/** What both commands of this room begin and end with. */
import { fileURLToPath } from 'node:url';
import { textOf } from './findings.ts';
import { SUITE_ERROR } from './summary.ts';

/** Where results are kept, and what runs write. */
export const CACHE = fileURLToPath(new URL('../../../.cache/faults', import.meta.url));
/** The exit status of a run that was stopped before it had shown what it was to show. */
export const STOPPED = 130;
const startedAt = performance.now();

/** A line of progress, with the seconds since the start. */
export function say(text: string): void {
  process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(5)} s  ${text}\n`);
}

/** Aborts at the first signal to stop, and says so; the second one calls `atOnce`: by default the process ends, and with it everything that it started. */
export function stopSignal(what: string, atOnce: () => void = () => process.exit(STOPPED)): AbortSignal {
  const stopping = new AbortController();
  const stop = (): void => {
    if (stopping.signal.aborted) {
      atOnce();
      return;
    }
    say(`${what}; once more to stop at once`);
    stopping.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
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
      process.stderr.write(`${textOf(error)}\n`);
      process.exit(SUITE_ERROR);
    },
  );
}
