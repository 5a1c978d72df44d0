/** Outages of ten minutes under load: bounded memory, no restart, no row lost. */
import { Dice } from './dice.ts';
import { FAULT_KINDS } from './fault-kinds.ts';
import { focused } from './options.ts';
import type { Plan } from './plan.ts';
import type { Setting, SinkName, TransportName } from './setting.ts';

const OUTAGES: readonly { readonly name: string; readonly transport: TransportName; readonly sink?: SinkName }[] = [
  { name: 'kill all brokers', transport: 'kafka' },
  { name: 'kill redis', transport: 'log' },
  { name: 'kill elasticsearch', transport: 'log', sink: 'elasticsearch' },
  { name: 'kill source', transport: 'log' },
  { name: 'kill writer', transport: 'log' },
  { name: 'way to source black-holes', transport: 'log' },
];

/** `focus`: only faults whose name holds one of these texts; none: all. Throws for a text that none holds. */
export function longPlans(minutes: number, rowsPerSecond: number, focus: readonly string[]): readonly Plan[] {
  const plans = OUTAGES.map(({ name, transport, sink = 'redis' }, index): Plan => {
    const kind = FAULT_KINDS.find((each) => each.name === name);
    if (kind === undefined) throw new Error(`there is no fault '${name}'`);
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
  const wanted = new Set(focused(OUTAGES, focus).map(({ name }) => name));
  return plans.filter(({ steps }) => steps.some(({ kind }) => wanted.has(kind.name)));
}
