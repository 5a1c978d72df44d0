/** The generated pages of docs/reference: from the declarations, so that they cannot differ from them. */
import { configurationPage } from '@mysync/config';
import { createMetrics } from '@mysync/telemetry';
import type { Command } from 'commander';
import { catalogues } from './catalogues.ts';
import { buildCommand, EXIT_HELP, SETTINGS_HELP } from './command.ts';

/** File name → content. */
export async function referencePages(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ['configuration.md', configurationPage()],
    ['errors.md', errorsPage()],
    ['metrics.md', await metricsPage()],
    ['command.md', commandPage()],
  ]);
}

function errorsPage(): string {
  const parts = [
    '# Errors',
    '',
    'Generated from the error catalogues by `npm run docs`; do not edit.',
    '',
    'Every error has a code that never changes, says what is wrong and where, and what to do about it. *Retried* means that MySync',
    'tries again by itself, with growing pauses. Findings of `mysync check` carry the code of the error that a start would raise.',
    '',
  ];
  for (const { title, entries } of catalogues) {
    parts.push(`## ${title}`, '', '| Code | Retried | What to do |', '|---|---|---|');
    for (const [code, { retriable, remedy }] of Object.entries(entries)) {
      parts.push(`| \`${code}\` | ${retriable ? 'yes' : 'no'} | ${cell(remedy)} |`);
    }
    parts.push('');
  }
  return `${parts.join('\n').trim()}\n`;
}

async function metricsPage(): Promise<string> {
  const { registry } = createMetrics();
  const parts = [
    '# Metrics',
    '',
    'Generated from the declaration of the metrics (`libs/telemetry`) by `npm run docs`; do not edit.',
    '',
    'Served at `/metrics` (options `telemetry.host` and `telemetry.port`) in the text format of Prometheus, together with the',
    'usual `process_…` and `nodejs_…` metrics.',
    '',
    '| Metric | Type | Labels | Meaning |',
    '|---|---|---|---|',
  ];
  for (const { name, type, help } of await registry.getMetricsAsJSON()) {
    const labels = labelNames(registry.getSingleMetric(name)).map((label) => `\`${label}\``);
    parts.push(`| \`${name}\` | ${type} | ${labels.join(', ')} | ${cell(help)} |`);
  }
  return `${parts.join('\n')}\n`;
}

/** prom-client keeps them, but does not declare them. */
function labelNames(metric: unknown): readonly string[] {
  const { labelNames: names } = (metric ?? {}) as { labelNames?: readonly string[] };
  return names ?? [];
}

function commandPage(): string {
  const nothing = { result: () => undefined, note: () => undefined, live: false, columns: 80 };
  const signal = new AbortController().signal;
  const idle = (): void => undefined;
  const program = buildCommand({ output: nothing, signal, settings: [], allowStop: idle, stopWithInput: idle });
  const parts = [
    '# The command',
    '',
    'Generated from the command line by `npm run docs`; do not edit. What the verbs promise: [the spec](../spec/command.md).',
    '',
    '```text',
    `${program.helpInformation().trim()}\n${SETTINGS_HELP}\n${EXIT_HELP}`,
    '```',
    '',
  ];
  for (const command of leaves(program)) {
    parts.push(`## \`mysync ${fullName(command)}\``, '', '```text', command.helpInformation().trim(), '```', '');
  }
  return `${parts.join('\n').trim()}\n`;
}

function leaves(command: Command): readonly Command[] {
  return command.commands.flatMap((child) => (child.commands.length > 0 ? leaves(child) : [child]));
}

function fullName(command: Command): string {
  const parent = command.parent;
  return parent === null || parent.parent === null ? command.name() : `${fullName(parent)} ${command.name()}`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ');
}
