/**
 * Table patterns: `database.table` with `*` (any text) and `?` (one character), case-sensitive.
 *
 * A name or a part of it in backticks stands for itself (`` `my.db`.`t?` ``; a backtick inside is doubled). A leading
 * `!` excludes. Of all patterns of a list that match a table the last one decides; where none matches, the table is
 * out, unless the list begins with an exclusion: then it is in (so `['!shop.secret']` means all but that one).
 */
import type { TableRef } from '@mysync/core';
import { mappingErrors } from './errors.ts';

interface TablePattern {
  readonly exclude: boolean;
  readonly database: RegExp;
  readonly table: RegExp;
}

/** Throws `MAPPING_PATTERN_INVALID` with the pattern and the position in it (from 1). */
export function compileTablePatterns(patterns: readonly string[]): (ref: TableRef) => boolean {
  const compiled = patterns.map(parsePattern);
  const byDefault = compiled[0]?.exclude ?? false;
  return (ref) => {
    for (let at = compiled.length - 1; at >= 0; at--) {
      const pattern = compiled[at];
      if (pattern?.database.test(ref.database) && pattern.table.test(ref.table)) return !pattern.exclude;
    }
    return byDefault;
  };
}

/** A rule for the tables that match. */
export interface TableRule {
  readonly match: string | readonly string[];
}

/** Finds the rule of a table: the first of the list whose `match` holds. */
export function compileRules<R extends TableRule>(rules: readonly R[]): (ref: TableRef) => R | undefined {
  const compiled = rules.map((rule) => ({
    rule,
    matches: compileTablePatterns(typeof rule.match === 'string' ? [rule.match] : rule.match),
  }));
  return (ref) => compiled.find(({ matches }) => matches(ref))?.rule;
}

export function firstMatchingRule<R extends TableRule>(rules: readonly R[], ref: TableRef): R | undefined {
  return compileRules(rules)(ref);
}

function parsePattern(pattern: string): TablePattern {
  const exclude = pattern.startsWith('!');
  const parts: string[] = [''];
  let quoted = false;
  let part = 0;
  let empty = true;
  const fail = (at: number, what: string): never => {
    throw mappingErrors.MAPPING_PATTERN_INVALID({
      message: `table pattern '${pattern}': ${what} at character ${at + 1}`,
      where: { pattern, position: at + 1 },
    });
  };
  const add = (source: string): void => {
    parts[part] += source;
    empty = false;
  };
  let at = exclude ? 1 : 0;
  for (; at < pattern.length; at++) {
    const char = String.fromCodePoint(pattern.codePointAt(at) ?? 0);
    if (char === '`' && quoted && pattern[at + 1] === '`') {
      add('`');
      at++;
    } else if (char === '`') {
      quoted = !quoted;
    } else if (quoted) {
      add(literal(char));
    } else if (char === '.') {
      if (empty) fail(at, 'a name is missing');
      if (part === 1) fail(at, 'a second dot (names with a dot need backticks)');
      part = 1;
      parts.push('');
      empty = true;
    } else if (/[\s!]/u.test(char)) {
      fail(at, `${char.trim() === '' ? 'a blank' : `'${char}'`} (such names need backticks)`);
    } else {
      add(char === '*' ? '.*' : char === '?' ? '.' : literal(char));
    }
    at += char.length - 1;
  }
  if (quoted) fail(at, 'a backtick is not closed');
  if (part === 0) fail(at, 'the dot between database and table is missing');
  if (empty) fail(at, 'a name is missing');
  return { exclude, database: whole(parts[0]), table: whole(parts[1]) };
}

function literal(char: string): string {
  return /[\\^$.*+?()[\]{}|/]/.test(char) ? `\\${char}` : char;
}

function whole(source: string | undefined): RegExp {
  return new RegExp(`^${source}$`, 'su');
}
