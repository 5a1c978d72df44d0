import { spawn } from 'node:child_process';
import type { DrillProcess } from './drill-process.ts';
import { drillErrors } from './errors.ts';
import type { FaultProxy } from './fault-proxy.ts';

export interface Fault {
  readonly kind: string;
  /** How long it lasts. */
  readonly seconds: number;
  break(): Promise<void>;
  mend(): Promise<void>;
}

/** A fault of the user's own: two shell commands. */
export interface PlannedFault {
  readonly name: string;
  readonly break: string;
  readonly mend: string;
  readonly seconds: number;
}

/** No timer of Node's runs for longer. */
const MOST_SECONDS = 2_147_483;

/** Throws DRILL_PLAN_INVALID. `where`: the file. */
export function parsePlan(text: string, where: string): readonly PlannedFault[] {
  const invalid = (message: string): Error => drillErrors.DRILL_PLAN_INVALID({ message, where: { path: where } });
  let plan: unknown;
  try {
    plan = JSON.parse(text);
  } catch (cause) {
    throw drillErrors.DRILL_PLAN_INVALID({ message: 'the plan is not JSON', where: { path: where }, cause });
  }
  if (!Array.isArray(plan)) throw invalid('the plan is not a list');
  return plan.map((entry: unknown, at) => {
    const fault = entry as Partial<PlannedFault> | null;
    if (typeof fault?.name !== 'string' || typeof fault.break !== 'string' || typeof fault.mend !== 'string') {
      throw invalid(`entry ${at + 1} lacks name, break or mend`);
    }
    if (typeof fault.seconds !== 'number' || !(fault.seconds >= 0 && fault.seconds <= MOST_SECONDS)) {
      throw invalid(`entry ${at + 1} has no seconds (0 to ${MOST_SECONDS})`);
    }
    return { name: fault.name, break: fault.break, mend: fault.mend, seconds: fault.seconds };
  });
}

export function plannedFault(planned: PlannedFault, signal: AbortSignal): Fault {
  const { name, seconds } = planned;
  return {
    kind: name,
    seconds,
    break: () => run(name, planned.break, signal),
    // also when the drill was told to stop meanwhile: what it has broken must not stay so
    mend: () => run(name, planned.mend),
  };
}

/** Ends at once and is started again. */
export function killed(name: string, process: DrillProcess): Fault {
  return {
    kind: `${name} killed`,
    seconds: 0,
    break: () => process.kill(),
    mend: () => {
      process.start();
      return Promise.resolve();
    },
  };
}

export function frozen(name: string, process: DrillProcess, seconds: number): Fault {
  return { kind: `${name} frozen`, seconds, break: act(() => process.freeze()), mend: act(() => process.wake()) };
}

export function waysBroken(name: string, proxy: FaultProxy, seconds: number): readonly Fault[] {
  const mend = act(() => proxy.set({ kind: 'open' }));
  return [
    { kind: `${name} cut off`, seconds, break: act(() => proxy.set({ kind: 'cut' })), mend },
    { kind: `${name} silent`, seconds, break: act(() => proxy.set({ kind: 'silent' })), mend },
    {
      kind: `${name} slow`,
      seconds,
      break: act(() => proxy.set({ kind: 'slow', bytesPerSecond: SLOW_BYTES })),
      mend,
    },
  ];
}

const SLOW_BYTES = 20_000;

function act(what: () => void): () => Promise<void> {
  return () => {
    what();
    return Promise.resolve();
  };
}

async function run(name: string, command: string, signal?: AbortSignal): Promise<void> {
  const child = spawn(command, { shell: true, stdio: ['ignore', 'pipe', 'pipe'], ...(signal && { signal }) });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-1000);
    });
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  }).catch((error: unknown) => {
    // Node's own error of a stop is another one than whoever stopped us knows
    signal?.throwIfAborted();
    throw error;
  });
  if (code === 0) return;
  throw drillErrors.DRILL_COMMAND_FAILED({
    message: `the command of '${name}' ended with ${code}: ${output.trim()}`,
    where: { fault: name, command },
  });
}
