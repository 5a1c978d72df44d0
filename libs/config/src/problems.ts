/** What the schema found wrong, as errors that name key path, place, value and allowed values; never a secret. */
import { MysyncError as CatalogueError, type MysyncError } from '@mysync/core';
import { didYouMean } from '@mysync/mapping';
import type { z } from 'zod';
import { configErrors } from './errors.ts';
import { allowedValues, holdsSecret, type OptionNode } from './option-tree.ts';
import { environmentName, formatPath, type KeyPath, optionAt } from './path.ts';

interface ProblemContext {
  readonly tree: OptionNode;
  readonly raw: unknown;
  place(path: KeyPath): string;
}

export function issueProblems(issues: readonly z.core.$ZodIssue[], context: ProblemContext): readonly MysyncError[] {
  return issues.map((issue) => issueProblem(issue, context));
}

function issueProblem(issue: z.core.$ZodIssue, context: ProblemContext): MysyncError {
  const path = issue.path.filter((part): part is string | number => typeof part !== 'symbol');
  const key = formatPath(path);
  const { node, value } = optionAt(context.tree, context.raw, path);
  const where = { key, place: context.place(path) };
  if (issue.code === 'invalid_key') {
    return configErrors.CONFIG_NAME_INVALID({ message: `${key} is not a name that can be used here`, where });
  }
  if (value === undefined) {
    const allowed = node === undefined ? '' : ` ${node.description} Allowed: ${allowedValues(node)}.`;
    const remedy = `Set ${key} (or ${environmentName(path)}).${allowed}`;
    return configErrors.CONFIG_VALUE_MISSING({ message: `${key} is missing`, where, remedy });
  }
  if (issue.code === 'custom' && typeof issue.params?.['code'] === 'string') {
    const entry = { remedy: String(issue.params['remedy']), retriable: false };
    return new CatalogueError(issue.params['code'], entry, { message: `${key}: ${issue.message}`, where });
  }
  const allowed = node === undefined ? '' : allowedValues(node);
  const remedy = allowed === '' ? undefined : `Allowed: ${allowed}.`;
  const shown = node === undefined || holdsSecret(node) ? describe(value) : shownValue(value);
  const choices = node?.kind === 'value' ? node.choices : node?.kind === 'variants' ? [...node.variants.keys()] : [];
  const hint = typeof value === 'string' ? didYouMean(value, choices) : '';
  const message = `${key} is ${shown}${fault(issue)}${hint}`;
  return configErrors.CONFIG_VALUE_INVALID({ message, where, ...(remedy === undefined ? {} : { remedy }) });
}

function fault(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'custom':
      return `, which ${issue.message}`;
    case 'too_small':
      return issue.origin === 'array' || issue.origin === 'string' ? '' : `, below ${issue.minimum}`;
    case 'too_big':
      return `, above ${issue.maximum}`;
    default:
      return '';
  }
}

const SHOWN_CHARACTERS = 80;

function shownValue(value: unknown): string {
  if (typeof value !== 'string') return describe(value);
  if (value === '') return 'empty';
  // Before an @ may stand a user and password, wherever they were written: not for show.
  const masked = value.replace(/^.*@/s, '[secret]@');
  return `'${masked.length > SHOWN_CHARACTERS ? `${masked.slice(0, SHOWN_CHARACTERS)}…` : masked}'`;
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object') return 'a section';
  if (typeof value === 'string') return 'text';
  return String(value);
}
