/** Flags: `--section.key=value` and `--set section.key=value`, taken out of the command line before the command reads the rest. */
import type { MysyncError } from '@mysync/core';
import { didYouMean } from '@mysync/mapping';
import { configErrors } from './errors.ts';
import type { OptionNode } from './option-tree.ts';
import { type Assignment, resolveDotted, TextValue } from './overlay.ts';
import { formatPath } from './path.ts';

/** Splits a command line into the assignments (`section.key=value`) and the rest. */
export function takeFlags(args: readonly string[]): {
  readonly settings: readonly string[];
  readonly rest: readonly string[];
} {
  const settings: string[] = [];
  const rest: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? '';
    if (arg === '--') {
      rest.push(...args.slice(at));
      break;
    }
    const following = args[at + 1];
    if (arg === '--set') {
      const given = following !== undefined && !following.startsWith('-');
      // Without one, an empty setting: told with the other problems.
      settings.push(given ? following : '');
      if (given) at++;
    } else if (arg.startsWith('--set=')) {
      settings.push(arg.slice('--set='.length));
    } else if (/^--[A-Za-z]+\./.test(arg)) {
      settings.push(arg.slice(2));
    } else {
      rest.push(arg);
    }
  }
  return { settings, rest };
}

export function flagAssignments(
  tree: OptionNode,
  settings: readonly string[],
  raw: unknown,
): { readonly assignments: readonly Assignment[]; readonly problems: readonly MysyncError[] } {
  const assignments: Assignment[] = [];
  const problems: MysyncError[] = [];
  for (const setting of settings) {
    if (setting === '') {
      problems.push(
        configErrors.CONFIG_FLAG_INVALID({ message: '--set has no value', where: { place: 'flag --set' } }),
      );
      continue;
    }
    const equals = setting.indexOf('=');
    const dotted = equals < 0 ? setting : setting.slice(0, equals);
    const place = `flag --${dotted}`;
    if (equals < 0) {
      problems.push(configErrors.CONFIG_FLAG_INVALID({ message: `--${dotted} has no value`, where: { place } }));
      continue;
    }
    const found = resolveDotted(tree, dotted, raw);
    if ('path' in found) {
      assignments.push({ path: found.path, value: new TextValue(setting.slice(equals + 1), 'plain'), place });
      continue;
    }
    const key = formatPath([...found.at, found.unknown]);
    const message = `${key} is no option${didYouMean(found.unknown, found.choices)}`;
    const allowed = found.choices.length === 0 ? 'no keys' : found.choices.join(', ');
    problems.push(configErrors.CONFIG_UNKNOWN_KEY({ message, where: { key, place, allowed } }));
  }
  return { assignments, problems };
}
