/** Places in the configuration: key paths, their text, and the option that stands there. */
import { choosingOption, type OptionNode, type SectionNode } from './option-tree.ts';

export type KeyPath = readonly (string | number)[];

/** `sources.shop.hosts[0]`; a key with a dot in it stands in quotes. */
export function formatPath(path: KeyPath): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += `${text === '' ? '' : '.'}${/^[A-Za-z0-9_-]+$/.test(part) ? part : JSON.stringify(part)}`;
  }
  return text;
}

/** `MYSYNC_SOURCES_SHOP_CONNECTION_TIMEOUT_MS`. */
export function environmentName(path: KeyPath): string {
  return ['MYSYNC', ...path.map((part) => environmentWord(String(part)))].join('_');
}

export function environmentWord(key: string): string {
  return key
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]/g, '_')
    .toUpperCase();
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The variant that a raw section chooses, if it chooses one. */
export function chosenVariant(node: OptionNode & { kind: 'variants' }, raw: unknown): SectionNode | undefined {
  const name = isPlainObject(raw) ? raw[node.key] : undefined;
  return typeof name === 'string' ? node.variants.get(name) : undefined;
}

/** The option at a path of the raw configuration, and the raw value there. */
export function optionAt(
  tree: OptionNode,
  raw: unknown,
  path: KeyPath,
): { node: OptionNode | undefined; value: unknown } {
  let node: OptionNode | undefined = tree;
  let value = raw;
  for (const part of path) {
    const chosen: OptionNode | undefined = node?.kind === 'variants' ? chosenVariant(node, value) : undefined;
    if (node?.kind === 'variants' && part === node.key) node = choosingOption(node);
    else if (node?.kind === 'variants') node = chosen?.kind === 'section' ? chosen.keys.get(String(part)) : undefined;
    else if (node?.kind === 'section') node = node.keys.get(String(part));
    else if (node?.kind === 'map') node = node.value;
    else if (node?.kind === 'list') node = node.item;
    else node = undefined;
    value = isPlainObject(value) || Array.isArray(value) ? (value as Record<string, unknown>)[String(part)] : undefined;
  }
  return { node, value };
}
