/** From file, environment and flags to a configuration: defaults < file < environment < flags, every problem at once. */
import type { MysyncError } from '@mysync/core';
import { type Environment, environmentAssignments } from './environment.ts';
import { configErrors } from './errors.ts';
import { parseConfigText, readConfigFile } from './file.ts';
import { flagAssignments } from './flags.ts';
import { normalise } from './normalise.ts';
import { optionTree } from './option-tree.ts';
import { type Assignment, assign } from './overlay.ts';
import { formatPath, isPlainObject, type KeyPath, optionAt } from './path.ts';
import { issueProblems } from './problems.ts';
import { crossFieldFindings } from './rules.ts';
import { type Config, configSchema } from './schema/index.ts';

export interface LoadOptions {
  /** Default: MYSYNC_CONFIG, then mysync.yaml in the working directory. */
  readonly path?: string;
  /** The text of the file, instead of reading it; `path` then only names it. */
  readonly text?: string;
  /** Default: that of the process. */
  readonly environment?: Environment;
  /** `section.key=value`, in order; the last of one key counts. */
  readonly settings?: readonly string[];
}

export type LoadResult =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly MysyncError[]; readonly path: string }
  | {
      readonly ok: false;
      readonly problems: readonly MysyncError[];
      readonly warnings: readonly MysyncError[];
      readonly path: string;
    };

/** Where the configuration is looked for. */
export function configPath(given: string | undefined, environment: Environment = process.env): string {
  return given ?? environment['MYSYNC_CONFIG'] ?? 'mysync.yaml';
}

export function loadConfig(options: LoadOptions = {}): LoadResult {
  const environment = options.environment ?? process.env;
  const path = configPath(options.path, environment);
  const read = options.text === undefined ? readConfigFile(path) : parseConfigText(options.text, path);
  if ('problems' in read) return { ok: false, problems: read.problems, warnings: [], path };
  const { file } = read;
  const tree = optionTree();
  const fromEnvironment = environmentAssignments(tree, environment, file.values);
  const fromFlags = flagAssignments(tree, options.settings ?? [], file.values);
  const assignments = [...fromEnvironment.assignments, ...fromFlags.assignments];
  const problems: MysyncError[] = [...fromFlags.problems];
  const warnings: MysyncError[] = [...fromEnvironment.warnings];
  const raw = overlaid(file.values ?? {}, assignments);
  const place = (at: KeyPath): string => overlayPlace(assignments, at) ?? file.place(at);
  if (!isPlainObject(raw)) {
    const message = 'the file is not a section of options';
    return {
      ok: false,
      problems: [configErrors.CONFIG_SYNTAX({ message, where: { place: file.place([]) } })],
      warnings,
      path,
    };
  }
  const normalised = normalise(tree, raw, [], { environment, place, problems, warnings });
  const parsed = configSchema.safeParse(normalised);
  if (!parsed.success) problems.push(...issueProblems(parsed.error.issues, { tree, raw: normalised, place }));
  if (parsed.success && problems.length === 0) {
    const findings = crossFieldFindings(parsed.data, (at) => ({ key: formatPath(at), place: place(at) }));
    problems.push(...findings.problems);
    warnings.push(...findings.warnings);
    if (problems.length === 0) return { ok: true, config: parsed.data, warnings, path };
  }
  return { ok: false, problems, warnings, path };
}

function overlaid(values: unknown, assignments: readonly Assignment[]): unknown {
  if (assignments.length === 0 || !isPlainObject(values)) return values;
  const root = structuredClone(values);
  const tree = optionTree();
  for (const { path, value } of assignments) {
    const parent = optionAt(tree, root, path.slice(0, -1)).node;
    const last = path.at(-1);
    const reference = parent?.kind === 'value' && parent.type === 'secret';
    // A reference replaces whatever stood there: { env: A } and { file: B } do not add up.
    if (reference) assign(root, path.slice(0, -1), { [String(last)]: value });
    else assign(root, path, value);
  }
  return root;
}

/** The place of the assignment that decides a path: the last that set it, or something around it. */
function overlayPlace(assignments: readonly Assignment[], path: KeyPath): string | undefined {
  return assignments.findLast(
    ({ path: set }) => set.length <= path.length && set.every((part, at) => String(part) === String(path[at])),
  )?.place;
}
