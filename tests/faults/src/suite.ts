import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { findAbilities } from './abilities.ts';
import type { FaultsOptions } from './options.ts';
import { type Plan, planOf } from './plan.ts';
import { runSeed, type SeedResult } from './run-seed.ts';
import { Stage } from './stage.ts';

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
}

/** Runs the seeds one after the other on one stage; gives the results, also those of an earlier run that it resumes. */
export async function runSuite(options: SuiteOptions): Promise<readonly SeedResult[]> {
  const { from, to, transport, resume, rate, focus, results: file, stopAtFailure, keep, folder, say, signal } = options;
  const earlier = resume ? await readResults(file, transport) : new Map<number, SeedResult>();
  const results: SeedResult[] = [];
  const { can, clockLibrary } = await findAbilities(say);
  await mkdir(dirname(file), { recursive: true });
  await mkdir(folder, { recursive: true });
  await using stage = new Stage();
  const count = options.plans?.length ?? to - from + 1;
  for (let index = 0; index < count && signal?.aborted !== true; index += 1) {
    const plan = options.plans?.[index] ?? planOf(from + index, { transport, can, focus, rate });
    const { seed } = plan;
    const known = earlier.get(seed);
    if (known !== undefined) {
      results.push(known);
      continue;
    }
    const result = await runSeed({ stage, plan, keep, folder, clockLibrary, say });
    results.push(result);
    await appendFile(file, `${JSON.stringify(result)}\n`);
    if (result.complaints.length === 0) {
      say(`seed ${seed} ok: ${result.rows} rows, ${result.faults.length} faults, ${result.seconds} s`);
      continue;
    }
    const flags = focus.length === 0 ? '' : ` --focus '${focus.join(',')}'`;
    say(`seed ${seed} FAILED: lost ${result.lost}, wrong ${result.wrong}, backward ${result.backward}
  ${result.complaints.join('\n  ')}
  again: npm run faults -- --seeds ${seed} --transport ${plan.setting.transport}${flags}
  logs: ${folder}/${plan.setting.transport}-${seed}`);
    if (stopAtFailure) break;
  }
  return results;
}

async function readResults(file: string, transport: string): Promise<Map<number, SeedResult>> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const found = new Map<number, SeedResult>();
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const result = JSON.parse(line) as SeedResult;
    // one that failed is run again
    if (result.transport === transport && result.complaints.length === 0) found.set(result.seed, result);
  }
  return found;
}
