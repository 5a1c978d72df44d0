/** The configuration file: YAML with the place of every key, so that a problem can be pointed at. */
import { readFileSync } from 'node:fs';
import { causeText, type MysyncError } from '@mysync/core';
import { isMap, isPair, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { configErrors } from './errors.ts';
import type { KeyPath } from './path.ts';

interface ConfigFile {
  readonly values: unknown;
  /** `mysync.yaml:3:5` of a key or of the closest key around it. */
  place(path: KeyPath): string;
}

/** What is wrong, in words of ours: the parser's own text may quote the file, secrets included. */
const SYNTAX: Readonly<Record<string, string>> = {
  BAD_INDENT: 'the indentation does not fit, or a bracket or quote above is not closed',
  DUPLICATE_KEY: 'a key stands here for the second time',
  MISSING_CHAR: 'a character is missing (a quote, a bracket, a comma, or a blank after a colon)',
  MULTILINE_IMPLICIT_KEY: 'a key runs over several lines (often a missing quote or colon)',
  TAB_AS_INDENT: 'a tab is used for indentation; use blanks',
  UNEXPECTED_TOKEN: 'something unexpected stands here',
  BAD_ALIAS: 'a value that begins with & or * needs quotes',
  TAG_RESOLVE_FAILED: 'a value that begins with ! needs quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a nested section must begin on a line of its own',
  MULTIPLE_DOCS: 'there is a second document (a line of ---)',
};

export type FileResult = { readonly file: ConfigFile } | { readonly problems: readonly MysyncError[] };

export function readConfigFile(path: string): FileResult {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    const where = { file: path };
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'EISDIR') {
      const message = `'${path}' is a folder, not a file`;
      return { problems: [configErrors.CONFIG_FILE_MISSING({ message, where })] };
    }
    const problem =
      code === 'ENOENT'
        ? configErrors.CONFIG_FILE_MISSING({ message: `there is no file '${path}'`, where })
        : configErrors.CONFIG_FILE_UNREADABLE({ message: `cannot read '${path}': ${causeText(cause)}`, where });
    return { problems: [problem] };
  }
  return parseConfigText(text, path);
}

export function parseConfigText(text: string, name: string): FileResult {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true, stringKeys: true });
  const placeAt = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${name}:${line}:${col}`;
  };
  const broken = [...document.errors, ...document.warnings];
  if (broken.length > 0) {
    const problems = broken.map((error) => {
      const what = SYNTAX[error.code] ?? `YAML does not allow this (${error.code.toLowerCase().replaceAll('_', ' ')})`;
      return configErrors.CONFIG_SYNTAX({ message: what, where: { place: placeAt(error.pos[0]) } });
    });
    return { problems };
  }
  let values: unknown;
  try {
    values = document.toJS({ maxAliasCount: 100 });
  } catch {
    const message = 'the aliases (*name) lead nowhere, or to too much';
    return { problems: [configErrors.CONFIG_SYNTAX({ message, where: { place: `${name}:1:1` } })] };
  }
  return { file: { values, place: (path) => placeAt(offsetOf(document.contents, path)) } };
}

function offsetOf(root: Node | null, path: KeyPath): number {
  let node: unknown = root;
  let offset = root?.range?.[0] ?? 0;
  for (const part of path) {
    let next: unknown;
    if (isMap(node)) {
      const pair = node.items.find(
        (item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(part),
      );
      if (pair === undefined) return offset;
      offset = (pair.key as Node).range?.[0] ?? offset;
      next = pair.value;
    } else if (isSeq(node)) {
      next = node.items[Number(part)];
      if (next === undefined) return offset;
      offset = (next as Node).range?.[0] ?? offset;
    } else {
      return offset;
    }
    node = next;
  }
  return offset;
}
