/** The options as a flat list, as help text and as the reference page: all from the one declaration. */
import { allowedValues, type OptionNode, optionTree } from './option-tree.ts';
import { environmentWord } from './path.ts';

export interface OptionEntry {
  /** `sources.NAME.hosts`. */
  readonly path: string;
  /** The variable, or '' for options inside lists. */
  readonly environment: string;
  readonly allowed: string;
  /** As text; '' when there is none. */
  readonly default: string;
  readonly required: boolean;
  readonly description: string;
}

export interface OptionGroup {
  readonly path: string;
  readonly description: string;
  readonly options: readonly OptionEntry[];
}

/** Every option, grouped by the section it stands in, in the order of declaration. */
export function optionGroups(): readonly OptionGroup[] {
  const groups: OptionGroup[] = [];
  collect(optionTree(), { path: '', environment: 'MYSYNC', inList: false }, groups);
  return groups;
}

interface Walk {
  readonly path: string;
  readonly environment: string;
  readonly inList: boolean;
}

function collect(node: OptionNode, walk: Walk, groups: OptionGroup[]): void {
  switch (node.kind) {
    case 'section': {
      const options: OptionEntry[] = [];
      const group = { path: walk.path, description: node.description, options };
      groups.push(group);
      for (const [key, child] of node.keys) {
        const below = {
          ...walk,
          path: join(walk.path, key),
          environment: `${walk.environment}_${environmentWord(key)}`,
        };
        if (hasSections(child)) {
          if (child.kind === 'section' && child.toggle) options.push(entry(child, below));
          collect(child, below, groups);
        } else {
          options.push(entry(child, below));
        }
      }
      return;
    }
    case 'variants':
      for (const [name, variant] of node.variants) {
        collect(variant, { ...walk, path: `${walk.path} (${node.key}: ${name})` }, groups);
      }
      return;
    case 'map':
      collect(
        node.value,
        { ...walk, path: join(walk.path, node.placeholder), environment: `${walk.environment}_${node.placeholder}` },
        groups,
      );
      return;
    case 'list':
      collect(node.item, { ...walk, path: `${walk.path}[]`, inList: true }, groups);
      return;
    case 'value':
      return;
  }
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

/** Options of the section stand in a group of their own. */
function hasSections(node: OptionNode): boolean {
  if (node.kind === 'section' || node.kind === 'variants') return true;
  if (node.kind === 'map') return hasSections(node.value);
  return node.kind === 'list' && hasSections(node.item);
}

function entry(node: OptionNode, walk: Walk): OptionEntry {
  const empty = Array.isArray(node.default) ? node.default.length === 0 : JSON.stringify(node.default) === '{}';
  return {
    path: walk.path,
    environment: walk.inList ? '' : walk.environment,
    allowed: allowedValues(node),
    default: node.default === undefined || empty ? '' : String(node.default),
    required: node.required,
    description: node.description,
  };
}

/** The options as plain text, for `--help`; only those whose path begins with `section` when given. */
export function optionsHelp(section = ''): string {
  const lines: string[] = [];
  for (const group of optionGroups()) {
    if (group.options.length === 0 || !group.path.startsWith(section)) continue;
    lines.push('', `${group.path === '' ? 'top level' : group.path}: ${group.description}`);
    for (const option of group.options) {
      const fallback = option.required ? ' (needed)' : option.default === '' ? '' : ` (default ${option.default})`;
      lines.push(`  --${option.path.replace(/ \(kind: \w+\)/, '')}=…${fallback}`);
      lines.push(`      ${option.description} Allowed: ${option.allowed}.`);
      if (option.environment !== '') lines.push(`      ${option.environment}`);
    }
  }
  return `${lines.join('\n').trim()}\n`;
}

/** docs/reference/configuration.md. */
export function configurationPage(): string {
  const parts = [
    '# Configuration',
    '',
    'Generated from the declaration of the options (`libs/config`) by `npm run docs`; do not edit.',
    '',
    'MySync reads one YAML file: `--config FILE`, else `MYSYNC_CONFIG`, else `mysync.yaml` in the working directory.',
    'Every option has a default, or is marked as needed. It can be set in four places; the later ones win:',
    '',
    '1. its default,',
    '2. the file,',
    '3. an environment variable: `MYSYNC_` and the path in capitals, `_` between words (`MYSYNC_READER_CHECKPOINT_MS`),',
    '4. a flag: `--section.key=VALUE` or `--set section.key=VALUE`.',
    '',
    'In variables and flags a list is written `a,b` or `[a, b]`, a section as YAML (`{ a: 1 }`). A list of one value needs no',
    'brackets, in the file neither. An unknown key is an error; an unknown variable that begins with `MYSYNC_` is a warning.',
    '',
    'A secret is text, `{ env: NAME }` (an environment variable) or `{ file: PATH }`; the variable of the option itself and the',
    'same with `_FILE` (a path) work, too. Secrets are never printed. Relative paths begin at the working directory.',
    '',
    'NAME, COLUMN, TABLE and SETTING stand for names that you choose; `[]` for each item of a list.',
    '',
  ];
  for (const group of optionGroups()) {
    if (group.options.length === 0) continue;
    parts.push(`## ${group.path === '' ? 'Top level' : `\`${group.path}\``}`, '', group.description, '');
    parts.push('| Option | Default | Allowed | Meaning |', '|---|---|---|---|');
    for (const option of group.options) {
      const key = option.path.slice(option.path.lastIndexOf('.') + 1);
      const fallback = option.required ? '*needed*' : option.default === '' ? '' : `\`${option.default}\``;
      const variable = option.environment === '' ? '' : `<br>\`${option.environment}\``;
      parts.push(`| \`${key}\`${variable} | ${fallback} | ${cell(option.allowed)} | ${cell(option.description)} |`);
    }
    parts.push('');
  }
  return `${parts.join('\n').trim()}\n`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}
