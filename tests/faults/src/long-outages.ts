/** Outages of ten minutes under load: bounded memory, no restart, no row lost. */
import { Dice } from './dice.ts';
import { FAULT_KINDS } from './fault-kinds.ts';
import type { Plan } from './plan.ts';
import type { Setting, SinkName, TransportName } from './setting.ts';

const OUTAGES: readonly { readonly fault: string; readonly transport: TransportName; readonly sink?: SinkName }[] = [
  { fault: 'kill all brokers', transport: 'kafka' },
  { fault: 'kill redis', transport: 'log' },
  { fault: 'kill elasticsearch', transport: 'log', sink: 'elasticsearch' },
  { fault: 'kill source', transport: 'log' },
  { fault: 'kill writer', transport: 'log' },
  { fault: 'way to source black-holes', transport: 'log' },
];

/** `focus`: only faults whose name holds one of these texts; none: all. */
export function longPlans(minutes: number, rowsPerSecond: number, focus: readonly string[]): readonly Plan[] {
  const plans = OUTAGES.map(({ fault, transport, sink = 'redis' }, index): Plan => {
    const kind = FAULT_KINDS.find(({ name }) => name === fault);
    if (kind === undefined) throw new Error(`there is no fault '${fault}'`);
    const setting: Setting = {
      transport,
      source: 'mariadb',
      sinks: [sink],
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
  const wanted = (name: string): boolean => focus.length === 0 || focus.some((text) => name.includes(text));
  return plans.filter(({ steps }) => steps.some(({ kind }) => wanted(kind.name)));
}
