/** Two seeds for leavings.e2e.test.ts: in the first one the fault freezes and replaces a reader, and then does as its line of standard input says. */
import { once } from 'node:events';
import { canMount } from './abilities.ts';
import { Dice } from './dice.ts';
import { runCommand, say, stopSignal } from './entry.ts';
import type { FaultKind } from './fault-kinds.ts';
import type { Plan } from './plan.ts';
import { runSuite } from './suite.ts';
import { exitStatus, summarize } from './summary.ts';

const setting: Plan['setting'] = {
  transport: 'log',
  source: 'mariadb',
  sinks: ['redis'],
  cluster: false,
  oneProcess: false,
  writers: 2,
  partitions: 2,
  ownClock: false,
  ownDisk: canMount(),
  shortRetention: false,
  compactionMs: null,
  checkpoint: 'file',
  rowsPerSecond: 300,
  reader: {},
  sink: {},
  sourceOptions: {},
  transportOptions: {},
};

const fault: FaultKind = {
  name: 'as it is told',
  weight: 1,
  holdMs: [0, 0],
  fits: () => true,
  strike: async (scene) => {
    const [reader] = scene.readers;
    if (reader === undefined) throw new Error('there is no reader');
    reader.signal('SIGSTOP');
    reader.retire();
    const successor = scene.actor('reader', null);
    scene.readers.splice(0, 1, successor);
    successor.start();
    process.stdout.write('struck\n');
    const [line] = (await once(process.stdin, 'data')) as [Buffer];
    if (line.toString() === 'throw\n') throw new Error('it cannot be struck');
    setTimeout(() => {
      throw new Error('nobody catches this');
    }, 0);
    return await new Promise(() => undefined);
  },
};

async function main([folder = '']: readonly string[]): Promise<number> {
  const step = { kind: fault, beforeMs: 0, holdMs: 0, overlaps: false, dice: new Dice(1) };
  const results = await runSuite({
    plans: [1, 2].map((seed) => ({ seed, setting, early: false, steps: seed === 1 ? [step] : [], stuckMs: 60_000 })),
    transport: 'log',
    from: 1,
    to: 2,
    resume: false,
    rate: 300,
    focus: [],
    results: `${folder}/results.jsonl`,
    stopAtFailure: true,
    keep: false,
    folder,
    say,
    signal: stopSignal('stopping after this seed'),
  });
  return exitStatus(summarize(results));
}

runCommand('', main);
