/**
 * Between the raw values and the schema: unknown keys are reported and dropped, texts from outside the file get their
 * type, secrets are resolved. The schema never sees the text of a secret, so none can get into a message of its.
 */
import { readFileSync } from 'node:fs';
import { causeText, type MysyncError } from '@mysync/core';
import { didYouMean } from '@mysync/mapping';
import type { Environment } from './environment.ts';
import { configErrors } from './errors.ts';
import { allowedValues, type OptionNode, type SectionNode, type ValueNode } from './option-tree.ts';
import { readText, TextValue } from './overlay.ts';
import { chosenVariant, formatPath, isPlainObject, type KeyPath } from './path.ts';
import { Secret, type SecretOrigin } from './secret.ts';

export interface NormaliseContext {
  readonly environment: Environment;
  /** Where a key was set: `mysync.yaml:3:5`, `environment variable X`, `flag --x`. */
  place(path: KeyPath): string;
  readonly problems: MysyncError[];
  readonly warnings: MysyncError[];
}

export function normalise(node: OptionNode, given: unknown, path: KeyPath, context: NormaliseContext): unknown {
  if (node.kind === 'value' && node.type === 'secret') return resolveSecret(node, given, path, context);
  const raw = given instanceof TextValue ? readText(node, given.text) : given;
  if (raw === null || raw === undefined) return undefined;
  switch (node.kind) {
    case 'value':
      return raw;
    case 'list': {
      const list = Array.isArray(raw) ? raw : isPlainObject(raw) ? indexed(raw) : [raw];
      return list.map((item, index) => normalise(node.item, item, [...path, index], context));
    }
    case 'map':
      if (!isPlainObject(raw)) return raw;
      if (Object.hasOwn(raw, '__proto__')) context.problems.push(reservedName([...path, '__proto__'], context));
      return Object.fromEntries(
        Object.entries(raw).map(([key, value]) => [key, normalise(node.value, value, [...path, key], context)]),
      );
    case 'variants': {
      const kind = isPlainObject(raw) ? raw[node.key] : undefined;
      const known = kind instanceof TextValue && isPlainObject(raw) ? { ...raw, [node.key]: kind.text } : raw;
      const chosen = chosenVariant(node, known);
      return chosen === undefined ? known : section(chosen, known, path, context);
    }
    case 'section':
      if (node.toggle && raw === true) return {};
      if (node.toggle && raw === false) return undefined;
      return section(node, raw, path, context);
  }
}

/** A section where a list is meant: one item, unless its keys are the places that assignments made. */
function indexed(raw: Record<string, unknown>): readonly unknown[] {
  const keys = Object.keys(raw);
  return keys.length > 0 && keys.every((key, index) => key === String(index)) ? Object.values(raw) : [raw];
}

/** The schema would pass it over in silence. */
function reservedName(path: KeyPath, context: NormaliseContext): MysyncError {
  const key = formatPath(path);
  const message = `${key} is not a name that can be used here`;
  return configErrors.CONFIG_NAME_INVALID({ message, where: { key, place: context.place(path) } });
}

function section(node: SectionNode, raw: unknown, path: KeyPath, context: NormaliseContext): unknown {
  if (!isPlainObject(raw)) return raw;
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(raw)) {
    const option = node.keys.get(key);
    if (option === undefined) {
      const choices = [...node.keys.keys()];
      const name = formatPath([...path, key]);
      const message = `${name} is no option${didYouMean(key, choices)}`;
      const where = { key: name, place: context.place([...path, key]), allowed: choices.join(', ') };
      context.problems.push(configErrors.CONFIG_UNKNOWN_KEY({ message, where }));
      continue;
    }
    const normalised = normalise(option, value, [...path, key], context);
    if (normalised !== undefined) result[key] = normalised;
  }
  return result;
}

function resolveSecret(node: ValueNode, given: unknown, path: KeyPath, context: NormaliseContext): Secret | undefined {
  if (given === null || given === undefined) return undefined;
  const key = formatPath(path);
  const where = { key, place: context.place(path) };
  const reference = given instanceof TextValue ? referenceText(given.text) : isPlainObject(given) ? given : undefined;
  if (reference !== undefined) return resolveReference(node, reference, where, context);
  const text = given instanceof TextValue ? given.text : given;
  if (typeof text !== 'string') {
    const message = `${key} is ${Array.isArray(text) ? 'a list' : `a ${typeof text}`}, not text`;
    const remedy = `Put it in quotes. Allowed: ${allowedValues(node)}.`;
    context.problems.push(configErrors.CONFIG_VALUE_INVALID({ message, where, remedy }));
    return new Secret('');
  }
  const origin: SecretOrigin = given instanceof TextValue ? given.origin : 'plain';
  if (origin === 'plain' && text !== '' && !text.includes('-----BEGIN CERTIFICATE')) {
    const message = `${key} holds a secret in plain text`;
    context.warnings.push(configErrors.CONFIG_SECRET_PLAIN({ message, where }));
  }
  return new Secret(text, origin);
}

/** `{ env: NAME }` or `{ file: PATH }` written as the value of a flag or variable. */
function referenceText(text: string): Record<string, unknown> | undefined {
  const match = /^\s*\{\s*(env|file)\s*:\s*(\S+)\s*\}\s*$/.exec(text);
  return match?.[1] === undefined ? undefined : { [match[1]]: match[2] };
}

function resolveReference(
  node: ValueNode,
  reference: Record<string, unknown>,
  where: { key: string; place: string },
  context: NormaliseContext,
): Secret {
  const entries = Object.entries(reference).map(([kind, value]) => [
    kind,
    value instanceof TextValue ? value.text : value,
  ]);
  const [kind, target] = entries[0] ?? [];
  if (entries.length !== 1 || (kind !== 'env' && kind !== 'file') || typeof target !== 'string' || target === '') {
    const message = `${where.key} is a section that is neither { env: NAME } nor { file: PATH }`;
    const remedy = `Allowed: ${allowedValues(node)}.`;
    context.problems.push(configErrors.CONFIG_VALUE_INVALID({ message, where, remedy }));
    return new Secret('');
  }
  if (kind === 'env') {
    const text = context.environment[target];
    if (text !== undefined && text !== '') return new Secret(text, { env: target });
    const state = text === undefined ? 'not set' : 'empty';
    const message = `${where.key} refers to the environment variable ${target}, which is ${state}`;
    context.problems.push(configErrors.CONFIG_SECRET_MISSING({ message, where: { ...where, variable: target } }));
    return new Secret('');
  }
  try {
    return new Secret(readFileSync(target, 'utf8').replace(/\r?\n$/, ''), { file: target });
  } catch (cause) {
    const message = `${where.key} refers to a file that cannot be read: ${causeText(cause)}`;
    context.problems.push(configErrors.CONFIG_SECRET_MISSING({ message, where: { ...where, file: target } }));
    return new Secret('');
  }
}
