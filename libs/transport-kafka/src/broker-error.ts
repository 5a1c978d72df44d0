/**
 * What a request to a broker can end in, inside this room: the broker's own error code, or no answer at all. Both are
 * translated into the catalogue where they leave the room.
 */
import { causeText, isMysyncError } from '@mysync/core';
import { type Admission, LOG_IN } from './admission.ts';
import { CODE, codeName, isDenied } from './protocol/codes.ts';

/** No answer: the connection was refused, lost, timed out or closed. Whether the request had an effect is not known. */
export const NO_ANSWER = 'no answer';

export class BrokerError extends Error {
  readonly code: number | typeof NO_ANSWER;

  constructor(code: number | typeof NO_ANSWER, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'BrokerError';
    this.code = code;
  }
}

export function refusal(code: number, what: string): BrokerError {
  return new BrokerError(code, `${what}: ${codeName(code)}`);
}

interface Asked {
  readonly address: string;
  readonly admission: Admission;
  /** What the request takes; a login of its own counts apart. */
  readonly right?: string | undefined;
}

/** kafkajs's errors, by their names and codes (never by text). */
export function fromKafkajs(error: unknown, asked: Asked): Error {
  const { address, admission, right = 'ask' } = asked;
  if (error instanceof BrokerError || isMysyncError(error)) return error;
  const { name, code, errors } = error as { name?: string; code?: unknown; errors?: unknown[] };
  if (name === 'KafkaJSAggregateError' && errors?.[0] !== undefined) return fromKafkajs(errors[0], asked);
  if (name === 'KafkaJSSASLAuthenticationError' || code === CODE.SASL_AUTHENTICATION_FAILED) {
    return admission.denied(LOG_IN, causeText(error), { broker: address });
  }
  if (typeof code === 'number' && isDenied(code)) {
    return admission.denied(right, causeText(error), { broker: address });
  }
  if (typeof code === 'number' && name?.startsWith('KafkaJS')) return new BrokerError(code, causeText(error), error);
  return new BrokerError(NO_ANSWER, `broker ${address}: ${causeText(error)}`, error);
}

export function hasCode(error: unknown, ...codes: readonly number[]): boolean {
  return error instanceof BrokerError && codes.includes(error.code as number);
}

/** A catalogue error says that trying again is of no use. */
export function isFinal(error: unknown): boolean {
  return isMysyncError(error) && !error.retriable;
}
