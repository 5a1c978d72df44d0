/**
 * Values given as text, by environment variables and flags: which option is meant, and what the text stands for.
 */
import { parse } from 'yaml';
import { choosingOption, type OptionNode, type SectionNode } from './option-tree.ts';
import { chosenVariant, environmentWord, isPlainObject, type KeyPath } from './path.ts';
import { isName } from './schema/elements.ts';
import type { SecretOrigin } from './secret.ts';

/** A value given as text, until its option says what it stands for. */
export class TextValue {
  readonly text: string;
  readonly origin: SecretOrigin;

  constructor(text: string, origin: SecretOrigin) {
    this.text = text;
    this.origin = origin;
  }
}

/** One assignment from outside the file. */
export interface Assignment {
  readonly path: KeyPath;
  readonly value: TextValue;
  /** `environment variable X` or `flag --x`: for messages. */
  readonly place: string;
}

/** Writes an assignment into the raw configuration, making sections on the way. */
export function assign(root: Record<string, unknown>, path: KeyPath, value: unknown): void {
  let target: Record<string, unknown> = root;
  path.forEach((part, index) => {
    const key = String(part);
    if (index === path.length - 1) {
      Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
      return;
    }
    const next = Object.hasOwn(target, key) ? target[key] : undefined;
    if (isPlainObject(next) || Array.isArray(next)) {
      target = next as Record<string, unknown>;
    } else {
      const made: Record<string, unknown> = {};
      Object.defineProperty(target, key, { value: made, enumerable: true, configurable: true, writable: true });
      target = made;
    }
  });
}

/** The keys below an option: of the variant that is chosen, or of all together when none is yet. */
function keysOf(node: OptionNode, raw: unknown): ReadonlyMap<string, OptionNode> {
  if (node.kind === 'section') return node.keys;
  if (node.kind !== 'variants') return new Map();
  const chosen = chosenVariant(node, raw);
  if (chosen !== undefined) return new Map([...chosen.keys, [node.key, choosingOption(node)]]);
  const all = [...node.variants.values()].flatMap((variant: SectionNode) => [...variant.keys]);
  return new Map([...all, [node.key, choosingOption(node)]]);
}

/**
 * The path that the words of an environment name stand for, or null. Names that the file has already are tried first;
 * a new name is taken as short as possible.
 */
export function resolveWords(node: OptionNode, words: readonly string[], raw: unknown): KeyPath | null {
  if (words.length === 0) return [];
  if (node.kind === 'value') {
    const reference = words.join('_');
    return node.type === 'secret' && (reference === 'ENV' || reference === 'FILE') ? [reference.toLowerCase()] : null;
  }
  if (node.kind === 'list') {
    const [index = ''] = words;
    if (!/^\d+$/.test(index) || !Array.isArray(raw) || Number(index) >= raw.length) return null;
    return prefixed(Number(index), resolveWords(node.item, words.slice(1), raw[Number(index)]));
  }
  const below = (key: string): unknown => (isPlainObject(raw) ? raw[key] : undefined);
  const known = node.kind === 'map' ? Object.keys(isPlainObject(raw) ? raw : {}) : [...keysOf(node, raw).keys()];
  const child = (key: string): OptionNode | undefined =>
    node.kind === 'map' ? node.value : keysOf(node, raw).get(key);
  const fitting = known.filter((key) => startsWith(words, environmentWord(key).split('_')));
  fitting.sort((a, b) => b.length - a.length);
  for (const key of fitting) {
    const option = child(key);
    const rest = words.slice(environmentWord(key).split('_').length);
    const found = option === undefined ? null : prefixed(key, resolveWords(option, rest, below(key)));
    if (found !== null) return found;
  }
  if (node.kind !== 'map') return null;
  for (let length = 1; length <= words.length; length++) {
    const name = words.slice(0, length).join('_').toLowerCase();
    const found = isName(name) ? resolveWords(node.value, words.slice(length), undefined) : null;
    if (found !== null && (found.length > 0 || node.value.kind === 'value' || node.value.kind === 'list')) {
      return [name, ...found];
    }
  }
  return null;
}

function startsWith(words: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((word, index) => words[index] === word);
}

function prefixed(part: string | number, rest: KeyPath | null): KeyPath | null {
  return rest === null ? null : [part, ...rest];
}

/** The path that a dotted flag stands for; or how far it got, with the keys that are possible there. */
export function resolveDotted(
  root: OptionNode,
  dotted: string,
  raw: unknown,
):
  | { readonly path: KeyPath }
  | { readonly unknown: string; readonly at: KeyPath; readonly choices: readonly string[] } {
  const parts = dotted.split('.');
  const path: (string | number)[] = [];
  let node: OptionNode | undefined = root;
  let value = raw;
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index] ?? '';
    if (node?.kind === 'map') {
      // The names of tables hold a dot: they take all that is left.
      const leaf: boolean = node.value.kind === 'value' || node.value.kind === 'list';
      path.push(leaf ? parts.slice(index).join('.') : part);
      if (leaf) return { path };
      node = node.value;
    } else if (node?.kind === 'list' && /^\d+$/.test(part)) {
      path.push(Number(part));
      node = node.item;
    } else if (node?.kind === 'value' && node.type === 'secret' && (part === 'env' || part === 'file')) {
      path.push(part);
      node = undefined;
    } else {
      const keys: ReadonlyMap<string, OptionNode> = node === undefined ? new Map() : keysOf(node, value);
      const next: OptionNode | undefined = keys.get(part);
      if (next === undefined) return { unknown: part, at: path, choices: [...keys.keys()] };
      path.push(part);
      node = next;
    }
    value = isPlainObject(value) || Array.isArray(value) ? (value as Record<string, unknown>)[part] : undefined;
  }
  return { path };
}

/** What a text stands for at an option. A text that does not fit is left as it is: the schema then refuses it. */
export function readText(node: OptionNode | undefined, text: string): unknown {
  switch (node?.kind) {
    case undefined:
      return text;
    case 'value':
      if (node.type === 'integer') return /^-?\d+$/.test(text.trim()) ? Number(text) : text;
      if (node.type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
      if (node.type === 'any') return readYaml(text);
      return text;
    case 'list': {
      if (text.trimStart().startsWith('[')) return readYaml(text);
      return text === '' ? [] : text.split(',').map((item) => item.trim());
    }
    default:
      return readYaml(text);
  }
}

function readYaml(text: string): unknown {
  try {
    return parse(text, { prettyErrors: false, stringKeys: true, logLevel: 'silent' });
  } catch {
    return text;
  }
}
