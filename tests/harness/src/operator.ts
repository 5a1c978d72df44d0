/** What MySync told the person who runs it: the errors in its output, and that no secret and no stack is among them. */
import assert from 'node:assert/strict';
import type { MysyncProcess } from './mysync.ts';
import { until } from './wait.ts';

export interface ToldError {
  readonly code: string;
  /** The message with its causes. */
  readonly message: string;
  /** The place, as `key value, key value`; of a log line with the sink, source and partition that it is about. */
  readonly where: string;
  readonly remedy: string;
}

const PRINTED =
  /^([A-Z]+(?:_[A-Z0-9]+)+|INTERNAL): (.*)\n(?: {2}where: (.*)\n)?(?: {2}cause: ([\s\S]*?)\n)?(?: {2}what to do: (.*))$/gm;

/** The errors in what a command printed: its own text, and its log lines. */
export function errorsIn(output: string): readonly ToldError[] {
  const found: ToldError[] = [];
  for (const [, code = '', message, where = '', cause, remedy = ''] of output.matchAll(PRINTED)) {
    found.push({ code, message: [message, cause].join(' '), where, remedy });
  }
  for (const line of output.split('\n')) {
    if (line.startsWith('{')) found.push(...errorOfLine(line));
  }
  return found;
}

function errorOfLine(line: string): readonly ToldError[] {
  const fields = JSON.parse(line) as Record<string, unknown>;
  const error = (typeof fields['error'] === 'object' ? fields['error'] : fields) as Record<string, unknown> | null;
  if (error === null || typeof error['code'] !== 'string') return [];
  const { code, message, where, cause, remedy } = error;
  const { sink, source, partition } = fields;
  const all = { sink, source, partition, ...((where ?? {}) as Record<string, unknown>) };
  const place = Object.entries(all).flatMap(([key, value]) => (value === undefined ? [] : `${key} ${value}`));
  return [{ code, message: [message, cause].join(' '), where: place.join(', '), remedy: String(remedy ?? '') }];
}

export interface Expected {
  readonly code: string;
  /** In the message or the place. */
  readonly where: readonly RegExp[];
  readonly remedy: RegExp;
  /** Texts that must not have been printed. */
  readonly secrets?: readonly string[];
}

/** Fails unless the output holds that error, with its place and its remedy; gives it. No secret, no stack. */
export function assertTold(output: string, { code, where, remedy, secrets = [] }: Expected): ToldError {
  assertClean(output, secrets);
  const all = errorsIn(output);
  const told = all.find((error) => error.code === code);
  assert.ok(told, `no ${code} in:\n${output.slice(-4000)}`);
  for (const place of where) assert.match(`${told.message} (${told.where})`, place);
  assert.match(told.remedy, remedy);
  return told;
}

/** Waits until a running process has told it. */
export async function untilTold(process: MysyncProcess, expected: Expected): Promise<ToldError> {
  await until(`${expected.code} is told`, () => {
    if (errorsIn(process.stderr).some(({ code }) => code === expected.code)) return true;
    assert.ok(process.running, `ended without telling ${expected.code}:\n${process.stderr.slice(-4000)}`);
    return false;
  });
  return assertTold(process.stderr, expected);
}

/** No secret was printed, and no stack. */
export function assertClean(output: string, secrets: readonly string[]): void {
  for (const secret of secrets) assert.ok(!output.includes(secret), `the secret ${secret} was printed:\n${output}`);
  assert.doesNotMatch(output, /(?:^|\n|\\n) {2,}at \S/, 'a stack was printed');
}
