/** One call of the command: arguments in, exit code out. No signals, no exit: those are of main. */
import { takeFlags } from '@mysync/config';
import { CommanderError } from 'commander';
import { buildCommand } from './command.ts';
import type { CommandContext } from './context.ts';
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
    // Commander has printed its text.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (context.signal.aborted && error === context.signal.reason) return EXIT.ok;
    context.output.note(`${errorText(error)}\n`);
    return EXIT.failed;
  }
}
