/** Readers and writers as the process runs them: with their status, their health and the retries around them. */
import { type Clock, isMysyncError, type Logger } from '@mysync/core';
import { Backoff, isRetriableError } from '@mysync/flow';
import { Reader, type ReaderOptions, type ReaderStatus } from '@mysync/reader';
import type { HealthReport } from '@mysync/telemetry';
import { Writer, type WriterOptions, type WriterStatus } from '@mysync/writer';
import { asMysyncError } from './output.ts';

/** How long after the start the reader may take, before it is news that there is no topic: it makes the topic once its source and all brokers answer. */
const TOPIC_MADE_MS = 30_000;
/** Who ran for this long has no part in what failed before: the next pause is the shortest again. */
const WELL_MS = 60_000;

export interface Part {
  readonly name: string;
  /** Resolves after an orderly stop; rejects when it cannot go on. */
  run(signal: AbortSignal): Promise<void>;
  refresh(): void;
  health(): HealthReport;
}

export interface ReaderPart extends Part {
  status(): ReaderStatus;
}

export interface WriterPart extends Part {
  status(): WriterStatus;
}

interface Runner<S> {
  run(signal: AbortSignal): Promise<void>;
  refresh(): void;
  health(): HealthReport;
  status(): S;
}

interface PartOptions {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Begins anew, with growing pauses, after failures that pass by themselves (a broker that is not there yet, a lost connection). */
export function part<S>(name: string, make: () => Runner<S>, { clock, logger }: PartOptions): Part & { status(): S } {
  let current = make();
  let used = false;
  /** Why it waits to begin anew; empty while it runs. */
  let waitsFor = '';
  return {
    name,
    run: async (signal) => {
      const backoff = new Backoff();
      const begunAt = clock.monotonic();
      for (let attempt = 1; !signal.aborted; attempt += 1) {
        if (used) current = make();
        used = true;
        const startedAt = clock.monotonic();
        try {
          await current.run(signal);
          return;
        } catch (error) {
          if (signal.aborted && (error === signal.reason || isRetriableError(error))) return;
          if (!isRetriableError(error)) throw error;
          if (clock.monotonic() - startedAt > WELL_MS) {
            backoff.reset();
            attempt = 1;
          }
          const delayMs = backoff.next();
          const fields = { part: name, attempt, delayMs: Math.round(delayMs) };
          const isAwaited =
            isMysyncError(error, 'TRANSPORT_TOPIC_MISSING') && clock.monotonic() - begunAt < TOPIC_MADE_MS;
          if (!isAwaited) logger.warn({ ...fields, error: asMysyncError(error).toJSON() }, 'trying again');
          else if (attempt === 1) logger.info({ part: name }, 'the topic is not there yet: the reader makes it');
          waitsFor = asMysyncError(error).toString();
          await clock.sleep(delayMs, signal).catch(() => undefined);
          waitsFor = '';
        }
      }
    },
    refresh: () => current.refresh(),
    health: () => {
      const report = current.health();
      // it begins anew by itself: a restart would not help
      return waitsFor === '' ? report : { ...report, alive: true, ready: false, detail: `trying again: ${waitsFor}` };
    },
    status: () => current.status(),
  };
}

export function readerPart(options: ReaderOptions): ReaderPart {
  return part(`reader ${options.sourceName}`, () => new Reader(options), options);
}

export function writerPart(options: WriterOptions & { readonly clock: Clock }): WriterPart {
  return part(`writer ${options.sinkName} of ${options.source}`, () => new Writer(options), options);
}

/**
 * Runs readers and writers together.
 *
 * 1. A stop ends the readers first; the writers go on until those have drained, then finish what they have in flight.
 * 2. The first part that fails stops all others in the same order; its error is thrown once they have ended.
 */
export async function runParts(
  readers: readonly Part[],
  writers: readonly Part[],
  signal: AbortSignal,
  onFailure: (name: string, error: unknown) => void,
): Promise<void> {
  const stopReaders = new AbortController();
  const stopWriters = new AbortController();
  let failure: { readonly error: unknown } | undefined;
  const stop = (): void => stopReaders.abort();
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  const watch = async (each: Part, own: AbortSignal): Promise<void> => {
    try {
      await each.run(own);
    } catch (error) {
      failure ??= { error };
      onFailure(each.name, error);
      stop();
    }
  };
  const reading = Promise.all(readers.map((reader) => watch(reader, stopReaders.signal)));
  const writing = Promise.all(writers.map((writer) => watch(writer, stopWriters.signal)));
  await Promise.all([reading, aborted(stopReaders.signal, readers.length > 0 ? reading : undefined)]);
  stopWriters.abort();
  await writing;
  signal.removeEventListener('abort', stop);
  if (failure !== undefined) throw failure.error;
}

/** Resolves when the signal aborts, or `otherwise` resolves. */
async function aborted(signal: AbortSignal, otherwise: Promise<unknown> | undefined): Promise<void> {
  const abort = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
  await (otherwise === undefined ? abort : Promise.race([abort, otherwise]));
}
