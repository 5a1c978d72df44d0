/** Trying again inside this room: transient refusals and lost answers, with growing pauses, for a time or for ever. */
import { causeText, isMysyncError, systemClock } from '@mysync/core';
import { Backoff } from '@mysync/flow';
import { transportErrors } from '@mysync/transport';
import { BrokerError } from './broker-error.ts';

export const RETRY_MIN_MS = 20;
export const RETRY_MAX_MS = 1_000;

export type PatienceOptions = {
  readonly what: string;
  readonly signal?: AbortSignal | undefined;
} & (
  | {
      /** Gives up after this time with the last failure. */
      readonly limitMs: number;
    }
  | {
      /** Never gives up: whoever waits for it must learn why it takes so long. */
      readonly onTrouble: (trouble: string) => void;
    }
);

/** True for what another attempt may mend: no answer, a code that is not final, no broker reachable, a denial of what was allowed before. */
export function isTransient(error: unknown): boolean {
  if (error instanceof BrokerError || isMysyncError(error, 'TRANSPORT_UNREACHABLE')) return true;
  return isMysyncError(error, 'TRANSPORT_ACCESS_LOST');
}

export async function patiently<T>(options: PatienceOptions, call: () => Promise<T>): Promise<T> {
  const backoff = new Backoff({ minMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS });
  const begin = systemClock.monotonic();
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      return await call();
    } catch (error) {
      if (!isTransient(error)) throw error;
      if ('onTrouble' in options) options.onTrouble(`waiting for ${options.what}: ${causeText(error)}`);
      else if (systemClock.monotonic() - begin > options.limitMs) throw unreachable(options.what, error);
      await systemClock.sleep(backoff.next(), options.signal);
    }
  }
}

/** What leaves the room when patience ended. */
export function unreachable(what: string, error: unknown): Error {
  if (isMysyncError(error)) return error;
  return transportErrors.TRANSPORT_UNREACHABLE({ message: `${what}: ${causeText(error)}`, cause: error });
}
