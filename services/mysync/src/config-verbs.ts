import { loadConfig, optionsHelp, printConfig, redactedConfig } from '@mysync/config';
import { type CommandContext, type CommonOptions, printProblems, requireConfig, usageError } from './context.ts';
import { commandErrors } from './errors.ts';
import { EXIT, ExitRequest } from './exit-codes.ts';
import { count } from './output.ts';

export function runConfigCheck(context: CommandContext, options: CommonOptions & { json?: boolean }): void {
  const { output, settings } = context;
  const result = loadConfig({ settings, ...(options.config === undefined ? {} : { path: options.config }) });
  const { warnings, path } = result;
  if (options.json === true) {
    const problems = result.ok ? [] : result.problems;
    output.result(`${JSON.stringify({ ok: result.ok, path, problems, warnings })}\n`);
  } else {
    for (const warning of warnings) output.note(`warning: ${warning.toString()}\n`);
    if (!result.ok) printProblems(output, path, result.problems);
    else {
      const { sources, sinks, transport } = result.config;
      const parts = [count(Object.keys(sources).length, 'source'), count(Object.keys(sinks).length, 'sink')];
      output.result(`${path}: valid (${parts.join(', ')}, transport ${transport.kind})\n`);
    }
  }
  if (!result.ok) throw new ExitRequest(EXIT.usage);
}

export function runConfigPrint(context: CommandContext, options: CommonOptions & { json?: boolean }): void {
  const { config } = requireConfig(context, options);
  context.output.result(options.json === true ? `${JSON.stringify(redactedConfig(config))}\n` : printConfig(config));
}

export function runConfigOptions(context: CommandContext, section?: string): void {
  const text = optionsHelp(section);
  if (text.trim() === '') {
    const message = `no option begins with '${section}'`;
    const remedy = '`mysync config options` lists every option.';
    usageError(context, commandErrors.COMMAND_NAME_UNKNOWN({ message, remedy }));
  }
  context.output.result(text);
}
