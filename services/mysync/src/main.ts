/** The process: signals, exit codes, the last resort for errors that nobody awaited. */
import './engine.ts';
import { runCli } from './cli.ts';
import { EXIT } from './exit-codes.ts';
import { count, errorText, type Output } from './output.ts';

const output: Output = {
  result: (text) => void process.stdout.write(text),
  note: (text) => void process.stderr.write(text),
  live: process.stderr.isTTY === true,
  columns: process.stderr.columns ?? 80,
};

const LAST_MOMENT_MS = 50;

const stop = new AbortController();
let stopMs = 5_000;

function onSignal(signal: NodeJS.Signals): void {
  if (stop.signal.aborted) {
    output.note(`${signal} again: ending at once. The next start resumes where this one was.\n`);
    endNow(EXIT.interrupted);
    return;
  }
  beginStop();
}

function beginStop(): void {
  if (stop.signal.aborted) return;
  stop.abort();
  setTimeout(() => {
    output.note(
      `The stop took longer than ${count(stopMs, 'ms', 'ms')}: ending now. The next start resumes where this one was.\n`,
    );
    endNow(EXIT.stopForced);
  }, stopMs).unref();
}

/** A moment for threads that wait for this one (a write of the embedded log): one that still waits then is ended by a kill, and the code is lost. */
function endNow(exitCode: number): void {
  setTimeout(() => process.exit(exitCode), LAST_MOMENT_MS);
}

function onStray(error: unknown): void {
  output.note(`${errorText(error)}\n`);
  process.exit(EXIT.failed);
}

process.on('SIGTERM', onSignal);
process.on('SIGINT', onSignal);
process.on('uncaughtException', onStray);
process.on('unhandledRejection', onStray);
// A reader of our output that went away (`mysync tail | head`) is no failure.
process.stdout.on('error', () => stop.abort());

const code = await runCli(process.argv.slice(2), {
  output,
  signal: stop.signal,
  allowStop: (ms) => {
    stopMs = ms;
  },
  stopWithInput: () => void process.stdin.once('close', beginStop).resume().unref(),
});
// Printed to the end first: standard output may be a pipe.
process.stdout.write('', () => process.exit(code));
