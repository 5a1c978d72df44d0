/** Outages of ten minutes under load: bounded memory, no restart, no row lost. */
import { Dice } from './dice.ts';
import { FAULT_KINDS } from './fault-kinds.ts';
import type { Plan } from './plan.ts';
import type { Setting, TransportName } from './setting.ts';

const OUTAGES: readonly { readonly fault: string; readonly transport: TransportName }[] = [
  { fault: 'kill all brokers', transport: 'kafka' },
  { fault: 'kill redis', transport: 'log' },
  { fault: 'kill source', transport: 'log' },
  { fault: 'kill writer', transport: 'log' },
  { fault: 'way to source black-holes', transport: 'log' },
];

export function longPlans(minutes: number, rowsPerSecond: number): readonly Plan[] {
  return OUTAGES.map(({ fault, transport }, index) => {
    const kind = FAULT_KINDS.find(({ name }) => name === fault);
    if (kind === undefined) throw new Error(`there is no fault '${fault}'`);
    const setting: Setting = {
      transport,
      source: 'mariadb',
      sinks: ['redis'],
      cluster: false,
      oneProcess: false,
      writers: 1,
      partitions: 4,
      ownClock: false,
      ownDisk: false,
      shortRetention: false,
      compactionMs: null,
      checkpoint: 'file',
      rowsPerSecond,
      reader: {},
      sink: {},
      sourceOptions: {},
      transportOptions: {},
    };
    const step = { kind, beforeMs: 1000, holdMs: minutes * 60_000, overlaps: false, dice: new Dice(index + 1) };
    // ten minutes of changes have to be read, published and applied before lag is back
    return { seed: index + 1, setting, early: false, steps: [step], stuckMs: minutes * 60_000 + 120_000 };
  });
}
