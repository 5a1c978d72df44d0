/** Environment variables: MYSYNC_SECTION_KEY. */
import type { MysyncError } from '@mysync/core';
import { didYouMean } from '@mysync/mapping';
import { configErrors } from './errors.ts';
import type { OptionNode } from './option-tree.ts';
import { type Assignment, resolveWords, TextValue } from './overlay.ts';
import { environmentWord, isPlainObject } from './path.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Variables of ours that are no options. */
const OTHERS = new Set(['MYSYNC_CONFIG', 'MYSYNC_SERVERS', 'MYSYNC_SERVICES']);
/** What Kubernetes sets by itself for a service called mysync or mysync-…. */
const KUBERNETES =
  /^MYSYNC_(?:[A-Z0-9_]+_)?(?:SERVICE_(?:HOST|PORT)(?:_.*)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;

export function environmentAssignments(
  tree: OptionNode,
  environment: Environment,
  raw: unknown,
): { readonly assignments: readonly Assignment[]; readonly warnings: readonly MysyncError[] } {
  const assignments: Assignment[] = [];
  const warnings: MysyncError[] = [];
  for (const [name, text] of Object.entries(environment)) {
    if (!name.startsWith('MYSYNC_') || text === undefined || OTHERS.has(name)) continue;
    const path = resolveWords(tree, name.slice('MYSYNC_'.length).split('_'), raw);
    if (path !== null) {
      const place = `environment variable ${name}`;
      assignments.push({ path, value: new TextValue(text, { env: name }), place });
    } else if (!KUBERNETES.test(name)) {
      const message = `the environment variable ${name} names no option${didYouMean(name, variables(tree, raw))}`;
      warnings.push(configErrors.CONFIG_ENVIRONMENT_UNKNOWN({ message, where: { variable: name } }));
    }
  }
  return { assignments, warnings };
}

/** The variables of the options that exist under the names in the file: for suggestions. */
function variables(node: OptionNode, raw: unknown, prefix = 'MYSYNC'): readonly string[] {
  const below = (key: string): unknown => (isPlainObject(raw) ? raw[key] : undefined);
  switch (node.kind) {
    case 'section':
      return [...node.keys].flatMap(([key, value]) =>
        variables(value, below(key), `${prefix}_${environmentWord(key)}`),
      );
    case 'variants':
      return [...node.variants.values()].flatMap((variant) => variables(variant, raw, prefix));
    case 'map':
      return Object.keys(isPlainObject(raw) ? raw : {}).flatMap((key) =>
        variables(node.value, below(key), `${prefix}_${environmentWord(key)}`),
      );
    default:
      return [prefix];
  }
}
