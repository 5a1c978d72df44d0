/** Names, numbers and files that the caller of the command gives. */
import { readFile } from 'node:fs/promises';
import { isMysyncError, type TableRef } from '@mysync/core';
import { compileTablePatterns, didYouMean } from '@mysync/mapping';
import { type CommandContext, usageError } from './context.ts';
import { commandErrors } from './errors.ts';

/** Ends the command when the name is none of the configured ones. */
export function requireName(
  context: CommandContext,
  kind: 'source' | 'sink',
  name: string,
  names: readonly string[],
): void {
  if (names.includes(name)) return;
  const message = `there is no ${kind} '${name}'${didYouMean(name, names)}`;
  const remedy =
    names.length === 0
      ? `No ${kind} is configured: write one into the configuration (${kind}s).`
      : `Use one of the configured ${kind}s: ${names.join(', ')}.`;
  usageError(context, commandErrors.COMMAND_NAME_UNKNOWN({ message, remedy, where: { option: `--${kind}` } }));
}

/** The source that is given, or the only one there is; else ends the command. */
export function chooseSource(context: CommandContext, names: readonly string[], given: string | undefined): string {
  const [only] = names;
  const source = given ?? (names.length === 1 ? only : undefined);
  if (source === undefined) {
    const message = 'there are several sources: which one is not said';
    const remedy = `Add --source with one of: ${names.join(', ')}.`;
    usageError(context, commandErrors.COMMAND_INVALID({ message, remedy }));
  }
  requireName(context, 'source', source, names);
  return source;
}

/** Ends the command when one of the patterns (as in the configuration) is none. */
export function tablePatterns(context: CommandContext, patterns: readonly string[]): (table: TableRef) => boolean {
  try {
    return compileTablePatterns(patterns);
  } catch (error) {
    if (isMysyncError(error)) usageError(context, error);
    throw error;
  }
}

/** No timer of Node's runs for longer. */
export const MOST_SECONDS = 2_147_483;

export function wholeNumber(
  context: CommandContext,
  option: string,
  text: string,
  { least = 0, most = Number.MAX_SAFE_INTEGER }: { readonly least?: number; readonly most?: number } = {},
): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number <= most && number >= least) return number;
  const upTo = most === Number.MAX_SAFE_INTEGER ? '' : ` to ${most}`;
  const allowed =
    option === '--from'
      ? 'earliest, latest, or an offset: a whole number from 0'
      : `a whole number from ${least}${upTo}`;
  const details = { message: `${option} is '${text}'`, remedy: `Allowed: ${allowed}.`, where: { option } };
  usageError(context, commandErrors.COMMAND_VALUE_INVALID(details));
}

/** The text of the file that an option names. */
export async function readGiven(context: CommandContext, option: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const remedy = 'Name a file that this user can read.';
    const details = { message: `${option}: ${path} cannot be read`, remedy, where: { option }, cause };
    usageError(context, commandErrors.COMMAND_VALUE_INVALID(details));
  }
}
