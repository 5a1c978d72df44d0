import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { findAbilities } from './abilities.ts';
import type { Outcome } from './findings.ts';
import { DEFAULT_MINUTES, DEFAULT_RATE, type FaultsOptions } from './options.ts';
import { describe, type Plan, planOf } from './plan.ts';
import { runSeed, type SeedResult } from './run-seed.ts';
import { Stage } from './stage.ts';

/** So many seeds one after the other that ended by errors of the suite: the next ones would, too. */
const MOST_SUITE_ERRORS = 5;

export interface SuiteOptions
  extends Pick<
    FaultsOptions,
    'from' | 'to' | 'transport' | 'resume' | 'rate' | 'focus' | 'results' | 'stopAtFailure' | 'keep'
  > {
  /** Folder for what failing seeds leave. */
  readonly folder: string;
  readonly say: (text: string) => void;
  readonly signal?: AbortSignal;
  /** In place of the seeds. */
  readonly plans?: readonly Plan[];
  /** How long those last. */
  readonly longMinutes?: number;
}

/** Runs the seeds one after the other on one stage; gives the results, also those of an earlier run that it resumes. */
export async function runSuite(options: SuiteOptions): Promise<readonly SeedResult[]> {
  const { from, to, transport, resume, rate, focus, results: file, stopAtFailure, keep, folder, say, signal } = options;
  const earlier = resume ? await readResults(file, transport) : new Map<number, SeedResult>();
  const results: SeedResult[] = [];
  const { can, clockLibrary } = await findAbilities(say);
  await mkdir(dirname(file), { recursive: true });
  await mkdir(folder, { recursive: true });
  let stage = new Stage();
  const clearStage = async (): Promise<void> => {
    for (const trouble of await stage.clear()) say(trouble);
  };
  try {
    const count = options.plans?.length ?? to - from + 1;
    let inARow = 0;
    for (let index = 0; index < count && signal?.aborted !== true; index += 1) {
      const plan = options.plans?.[index] ?? planOf(from + index, { transport, can, focus, rate });
      const known = earlier.get(plan.seed);
      if (known !== undefined && isResultOf(known, plan)) {
        results.push(known);
        continue;
      }
      const result = await runSeed({ stage, plan, keep, folder, clockLibrary, say });
      results.push(result);
      await appendFile(file, `${JSON.stringify(result)}\n`);
      tell(result, plan, options);
      if (result.outcome === 'failed' && stopAtFailure) break;
      inARow = result.outcome === 'suite error' ? inARow + 1 : 0;
      if (inARow === MOST_SUITE_ERRORS) {
        say(`${inARow} seeds one after the other ended by errors of the suite: no more are run`);
        break;
      }
      if (result.suiteErrors.length === 0) continue;
      // nobody knows what state its servers are in
      await clearStage();
      stage = new Stage();
    }
  } finally {
    await clearStage();
  }
  return results;
}

/** Other flags make another plan of the same seed. */
export function isResultOf({ what, rowsPerSecond }: Pick<SeedResult, 'what' | 'rowsPerSecond'>, plan: Plan): boolean {
  return what === describe(plan) && rowsPerSecond === plan.setting.rowsPerSecond;
}

function tell(result: SeedResult, plan: Plan, options: SuiteOptions): void {
  const { folder, say } = options;
  const { seed, transport, outcome, lost, wrong, backward, complaints, suiteErrors, rows, faults, seconds } = result;
  const { dropped = [] } = result;
  if (outcome === 'passed') {
    const not = dropped.length === 0 ? '' : ` (planned and not struck: ${dropped.join(', ')})`;
    say(`seed ${seed} ok: ${rows} rows, ${faults.length} faults${not}, ${seconds} s`);
    return;
  }
  const how =
    outcome === 'failed'
      ? `FAILED: lost ${lost}, wrong ${wrong}, backward ${backward}`
      : 'ended by an error of the suite, which says nothing about MySync';
  const own = suiteErrors.map((text) => `suite error: ${text}`);
  say(`seed ${seed} ${how}
  ${[...complaints, ...own].join('\n  ')}
  again: npm run faults -- ${againFlags(seed, plan, options)}
  logs: ${folder}/${transport}-${seed}`);
}

/** What runs the very same once more. */
export function againFlags(
  seed: number,
  { setting, steps }: Plan,
  { plans, longMinutes = DEFAULT_MINUTES, focus, rate }: Pick<SuiteOptions, 'plans' | 'longMinutes' | 'focus' | 'rate'>,
): string {
  const isOutage = plans !== undefined;
  const kinds = isOutage ? steps.map(({ kind }) => kind.name) : focus;
  return [
    ...(isOutage ? ['--long'] : ['--seeds', seed, '--transport', setting.transport]),
    ...(isOutage && longMinutes !== DEFAULT_MINUTES ? ['--minutes', longMinutes] : []),
    ...(kinds.length === 0 ? [] : ['--focus', `'${kinds.join(',')}'`]),
    ...(rate === DEFAULT_RATE ? [] : ['--rate', setting.rowsPerSecond]),
  ].join(' ');
}

/** Files of before the outcome was told have none; those of before the rate was are of the default. */
type Written = Omit<SeedResult, 'outcome' | 'rowsPerSecond'> & {
  readonly outcome?: Outcome;
  readonly rowsPerSecond?: number;
};

/** Of each seed that passed when it was run last. */
export async function readResults(file: string, transport: string): Promise<Map<number, SeedResult>> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const found = new Map<number, SeedResult>();
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const result = JSON.parse(line) as Written;
    if (result.transport !== transport) continue;
    const { rowsPerSecond = DEFAULT_RATE, outcome = result.complaints.length === 0 ? 'passed' : 'failed' } = result;
    // one that failed, or showed nothing, is run again
    if (outcome === 'passed') found.set(result.seed, { ...result, outcome, rowsPerSecond });
    else found.delete(result.seed);
  }
  return found;
}
