/** One call of the command: arguments in, exit code out. No signals, no exit: those are of main. */
import { takeFlags } from '@mysync/config';
import type { MysyncError } from '@mysync/core';
import { CommanderError } from 'commander';
import { buildCommand } from './command.ts';
import { type CommandContext, isStop } from './context.ts';
import { commandErrors } from './errors.ts';
import { EXIT, ExitRequest } from './exit-codes.ts';
import { errorText } from './output.ts';

export async function runCli(args: readonly string[], context: Omit<CommandContext, 'settings'>): Promise<number> {
  const { settings, rest } = takeFlags(args);
  const command = buildCommand({ ...context, settings });
  try {
    await command.parseAsync([...rest], { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    if (error instanceof ExitRequest) return error.code;
    if (error instanceof CommanderError) {
      // Help and version are printed by then.
      if (error.exitCode === 0) return EXIT.ok;
      if (error.code !== 'commander.help') context.output.note(`${commandLineError(error)}\n`);
      return EXIT.usage;
    }
    if (isStop(context, error)) {
      // Whoever asked must not take this for an answer.
      context.output.note(`${commandErrors.COMMAND_STOPPED({ message: 'stopped before it was done' })}\n`);
      return EXIT.failed;
    }
    context.output.note(`${errorText(error)}\n`);
    return EXIT.failed;
  }
}

/** Commander's text, as every error is shown. */
function commandLineError({ message }: CommanderError): MysyncError {
  const [what = '', hint] = message.replace(/^error: /, '').split('\n');
  return commandErrors.COMMAND_INVALID({ message: hint === undefined ? what : `${what} ${hint}` });
}
