import { type Config, loadConfig } from '@mysync/config';
import type { MysyncError } from '@mysync/core';
import { EXIT, ExitRequest } from './exit-codes.ts';
import { count, type Output } from './output.ts';

/** What every verb is given. */
export interface CommandContext {
  readonly output: Output;
  /** Aborts at the first SIGTERM or SIGINT. */
  readonly signal: AbortSignal;
  /** `section.key=value` from the command line. */
  readonly settings: readonly string[];
  /** How long an orderly stop may take from now on, once it has begun. */
  allowStop(ms: number): void;
  /** Stops in order once standard input has ended: it is a pipe of whoever started us, and ends with them. */
  stopWithInput(): void;
}

/** What commander hands to every verb. */
export interface CommonOptions {
  readonly config?: string;
}

export interface LoadedConfig {
  readonly config: Config;
  readonly path: string;
  readonly warnings: readonly MysyncError[];
}

/** The configuration, or all its problems printed and the command ended. */
export function requireConfig(context: CommandContext, options: CommonOptions): LoadedConfig {
  const result = loadConfig({
    settings: context.settings,
    ...(options.config === undefined ? {} : { path: options.config }),
  });
  if (result.ok) return result;
  printProblems(context.output, result.path, result.problems);
  throw new ExitRequest(EXIT.usage);
}

export function printProblems(output: Output, path: string, problems: readonly MysyncError[]): void {
  for (const problem of problems) output.note(`${problem.toString()}\n`);
  output.note(`${path}: ${count(problems.length, 'problem')}\n`);
}

/** For verbs that run until they are stopped: being stopped is how they end well. */
export async function untilStopped(context: CommandContext, work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isStop(context, error)) throw error;
  }
}

/** Thrown since the command was told to stop. */
export function isStop({ signal }: Pick<CommandContext, 'signal'>, error: unknown): boolean {
  return signal.aborted && error === signal.reason;
}

export function usageError(context: CommandContext, error: MysyncError): never {
  context.output.note(`${error}\n`);
  throw new ExitRequest(EXIT.usage);
}
