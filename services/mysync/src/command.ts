/** The command line: verbs and their options. What they do stands in files of their own, loaded when they are called. */
import { configPath, optionsHelp } from '@mysync/config';
import { Command, Option } from 'commander';
import { runConfigCheck, runConfigOptions, runConfigPrint } from './config-verbs.ts';
import { type CommandContext, untilStopped } from './context.ts';
import { version } from './version.ts';

const HELP_COLUMNS = 100;

export const SETTINGS_HELP = `
Every option of the configuration can be set here, too, over file and environment:
  --section.key=VALUE, or --set section.key=VALUE
  for example --telemetry.logLevel=debug --set transport.partitions=8
mysync config options lists them all.`;

export const EXIT_HELP = `
Exit codes: 0 done, or stopped in order · 1 failed · 2 command line or configuration wrong · 3 check, verify or drill found errors
· 4 the stop took too long and was cut short · 130 interrupted twice, or before it began`;

const EMBEDDED_LOG_HELP = `
The embedded log is opened for writing even to look at it: run this as a user that may write to transport.log.path.`;

const VERIFY_HELP = `
Reader and writers must run: what differs is looked at again after the changes that were under way have arrived.
A row counts as different only when neither it nor its record changed meanwhile. Exit code 3: something is wrong (and was not repaired).`;

const DRILL_HELP = `
Stop your reader of the source first: the drill starts a reader and writers of this configuration itself, kills and freezes them, and cuts,
silences and slows their ways to source and sink. Everything else that is captured goes on being copied meanwhile.
Exit code 3: something was lost, wrong or stale.`;

/** `section.key=value` is taken out of the arguments before: see `takeFlags`. */
export function buildCommand(context: CommandContext): Command {
  const program = new Command('mysync')
    .description('Every change committed to MySQL or MariaDB, in your other stores within milliseconds.')
    .version(version, '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Print this help.')
    .helpCommand('help [command]', 'Print the help of a command.')
    .configureOutput({
      writeOut: context.output.result,
      writeErr: context.output.note,
      // Shown by `runCli`, with a code and what to do.
      outputError: () => undefined,
      // The same text everywhere: the reference page is made of it.
      getOutHelpWidth: () => HELP_COLUMNS,
      getErrHelpWidth: () => HELP_COLUMNS,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .addHelpText('after', `${SETTINGS_HELP}\n${EXIT_HELP}`)
    .exitOverride();
  const verb = (parent: Command, name: string, description: string): Command =>
    parent
      .command(name)
      .description(description)
      .helpOption('-h, --help', 'Print this help.')
      .addOption(
        new Option(
          '-c, --config <file>',
          `The configuration file (default: MYSYNC_CONFIG, or ${configPath(undefined, {})}).`,
        ),
      );
  const running = (name: string, description: string): Command =>
    verb(program, name, description).addHelpText('after', () => `\nOptions of the configuration:\n\n${optionsHelp()}`);

  running('run', 'Run readers and writers of all sources and sinks in one process.').action(async (options) =>
    untilStopped(context, (await import('./run.ts')).runAll(context, options)),
  );
  running('reader', 'Run the readers alone.')
    .option('--source <name>', 'Only this source.')
    .addOption(untilInputEnds())
    .action(async (options) => untilStopped(context, (await import('./run.ts')).runReader(context, options)));
  running('writer', 'Run the writers of one sink alone; several such processes share the partitions.')
    .requiredOption('--sink <name>', 'The sink.')
    .addOption(untilInputEnds())
    .action(async (options) => untilStopped(context, (await import('./run.ts')).runWriter(context, options)));

  verb(
    program,
    'check',
    'Look for everything that would get in the way: configuration, sources, transport, sinks, mappings.',
  )
    .option('--json', 'Print JSON.')
    .action(async (options) => (await import('./check.ts')).runCheck(context, options));
  verb(program, 'status', 'Show positions, offsets, backlog and lag, from the running process or from what is stored.')
    .addHelpText('after', EMBEDDED_LOG_HELP)
    .option('--json', 'Print JSON.')
    .action(async (options) => (await import('./status.ts')).runStatus(context, options));
  verb(
    program,
    'verify',
    'Compare tables with what a sink holds of them, row by row, while changes go on; with --repair, mend it.',
  )
    .addHelpText('after', VERIFY_HELP)
    .requiredOption('--sink <name>', 'The sink.')
    .option('--source <name>', 'Only tables of this source.')
    .option('--table <pattern...>', 'Only tables that match, patterns as in the configuration.')
    .option('--repair', 'Rewrite what differs or is missing, delete what is extra.')
    .option(
      '--lost-deletions',
      'With --repair, of all tables: let partitions go on that stopped for WRITER_TOMBSTONES_LOST; the sink may show deleted rows until it is done.',
    )
    .option('--chunk-rows <number>', 'Rows that are read and compared at once.', '1000')
    .option('--rate <rows>', 'At most so many rows a second; 0: as fast as it goes.', '0')
    .option('--patience <seconds>', 'How long reader or writer may stand still before that is an error.', '30')
    .option('--json', 'Print JSON.')
    .action(async (options) => (await import('./verify.ts')).runVerify(context, options));
  verb(
    program,
    'drill',
    'Break this very set-up on purpose, one fault after another, while a table of its own is changed; report what was lost, wrong or stale.',
  )
    .addHelpText('after', DRILL_HELP)
    .requiredOption('--sink <name>', 'The sink.')
    .requiredOption(
      '--table <table>',
      'DATABASE.TABLE: made, changed and dropped by the drill; the source must capture it, the sink map it.',
    )
    .option('--source <name>', 'The source. Not needed when the sink takes one only.')
    .option('--seconds <number>', 'How long each fault lasts.', '5')
    .option('--patience <seconds>', 'How long nothing may move before the drill gives up.', '120')
    .option('--user <name>', 'A user that may make and change the table (default: that of the source).')
    .option('--password-file <file>', 'Its password.')
    .option(
      '--plan <file>',
      'More faults: a JSON list of {"name", "break", "mend", "seconds"} with shell commands, for example to restart a broker.',
    )
    .option('--folder <folder>', 'For the report and the logs.', 'mysync-drill')
    .option('--json', 'Print JSON.')
    .action(async (options) => (await import('./drill.ts')).runDrillVerb(context, options));
  verb(program, 'tail', 'Print messages as JSON lines.')
    .addHelpText('after', EMBEDDED_LOG_HELP)
    .option('--topic <name>', 'Topic to read.')
    .option('--source <name>', 'Read the topic of this source. Not needed when there is one source.')
    .option('--partition <number>', 'Only this partition.')
    .option('--from <offset>', 'earliest, latest, or an offset.', 'earliest')
    .option('-f, --follow', 'Go on with new messages, until stopped.')
    .option('--limit <number>', 'Stop after so many messages.')
    .action(async (options) => untilStopped(context, (await import('./tail.ts')).runTail(context, options)));

  verb(
    program,
    'recover',
    'When the log itself is lost: show from where in the source it must be filled again so that no sink misses a change, and do it with --yes.',
  )
    .option('--source <name>', 'The source. Not needed when there is one.')
    .option('--yes', 'Make the topic anew and put the checkpoint there. Reader and writers must be stopped.')
    .option('--json', 'Print JSON.')
    .action(async (options) => (await import('./recover.ts')).runRecover(context, options));
  addDdl(program, context, verb);
  addDlq(program, context, verb);

  const config = program
    .command('config')
    .description('Look at the configuration.')
    .helpOption('-h, --help', 'Print this help.');
  verb(config, 'check', 'Check the configuration alone, without connecting to anything.')
    .option('--json', 'Print JSON.')
    .action((options) => runConfigCheck(context, options));
  verb(config, 'print', 'Print the configuration with every default, secrets left out.')
    .option('--json', 'Print JSON.')
    .action((options) => runConfigPrint(context, options));
  config
    .command('options')
    .description('List every option: flag, default, allowed values, environment variable.')
    .argument('[section]', 'Only options that begin with this, for example transport.kafka.')
    .helpOption('-h, --help', 'Print this help.')
    .action((section?: string) => runConfigOptions(context, section));
  return program;
}

function addDdl(
  program: Command,
  context: CommandContext,
  verb: (parent: Command, name: string, description: string) => Command,
): void {
  const ddl = program
    .command('ddl')
    .description('The schema history of a source: DDL that could not be followed, and what was said to it.')
    .helpOption('-h, --help', 'Print this help.');
  const ddlVerb = (name: string, description: string): Command =>
    verb(ddl, name, description).option('--source <name>', 'The source. Not needed when there is one.');
  const question = (name: string, description: string): Command =>
    ddlVerb(name, description)
      .requiredOption('--position <file:offset>', "Of the question, as the reader's error names it.")
      .requiredOption('--table <name>', 'The table: DATABASE.TABLE.');
  ddlVerb('list', 'List definitions, statements and questions by position.')
    .option('--open', 'Only questions that nobody has answered.')
    .option('--json', 'Print JSON.')
    .action(async (options) => (await import('./ddl.ts')).runDdlList(context, options));
  question('accept', 'Say what the table was like at the question. The reader must be stopped.')
    .option('--definition <file>', 'The CREATE TABLE statement as SHOW CREATE TABLE prints it; - for standard input.')
    .option('--from-catalogue', 'The table is now as it was then.')
    .action(async (options) => (await import('./ddl.ts')).runDdlAccept(context, options));
  question('skip', 'Say that the statement changed neither columns nor keys. The reader must be stopped.').action(
    async (options) => (await import('./ddl.ts')).runDdlSkip(context, options),
  );
}

function addDlq(
  program: Command,
  context: CommandContext,
  verb: (parent: Command, name: string, description: string) => Command,
): void {
  const dlq = program
    .command('dlq')
    .description('Changes that a sink could not take: keys that are set aside, and dead letters.')
    .helpOption('-h, --help', 'Print this help.')
    .addHelpText('after', EMBEDDED_LOG_HELP);
  const about = (name: string, description: string): Command =>
    verb(dlq, name, description)
      .option('--sink <name>', 'Only this sink.')
      .option('--source <name>', 'Only changes of this source.')
      .option('--json', 'Print JSON.');
  const tableHelp = 'Only rows of tables that match, a pattern as in the configuration.';
  about('list', 'List them.')
    .option('--table <pattern>', tableHelp)
    .option('--acts', 'List what was retried and discarded: when, by whom, with what result.')
    .action(async (options) => (await import('./dlq.ts')).runDlqList(context, options));
  about('show', 'Show one with its newest message and what was done about it.')
    .argument('<id>', 'As the list shows it: SOURCE/PARTITION/OFFSET.')
    .action(async (id: string, options) => (await import('./dlq.ts')).runDlqShow(context, id, options));
  about('retry', 'Apply the newest state of these rows, never an older one. Writers may run meanwhile.')
    .argument('[ids...]', 'As the list shows them.')
    .option('--table <pattern>', tableHelp)
    .option('--all', 'All of them.')
    .action(async (ids: string[], options) => (await import('./dlq.ts')).runDlqAct(context, 'retry', ids, options));
  about('discard', 'Forget them: the sink keeps what it has of these rows until their next change.')
    .argument('[ids...]', 'As the list shows them.')
    .option('--table <pattern>', tableHelp)
    .option('--all', 'All of them.')
    .action(async (ids: string[], options) => (await import('./dlq.ts')).runDlqAct(context, 'discard', ids, options));
}

/** For processes that `mysync drill` starts: they end with it, however it ends. */
function untilInputEnds(): Option {
  return new Option('--until-input-ends').hideHelp();
}
