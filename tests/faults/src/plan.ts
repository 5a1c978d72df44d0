/** From a seed to what happens in it. Pure: the same seed with the same flags gives the same plan. */
import { Dice } from './dice.ts';
import { FAULT_KINDS, type FaultKind } from './fault-kinds.ts';
import { type Abilities, chooseSetting, onCluster, type Setting, type TransportName } from './setting.ts';

export interface Step {
  readonly kind: FaultKind;
  /** Quiet time before it. */
  readonly beforeMs: number;
  readonly holdMs: number;
  /** The next one strikes while this one lasts. */
  readonly overlaps: boolean;
  readonly dice: Dice;
}

export interface Plan {
  readonly seed: number;
  readonly setting: Setting;
  /** The first fault strikes while existing rows are still being read. */
  readonly early: boolean;
  readonly steps: readonly Step[];
  /** Lag must be back within this, or the pipeline counts as stuck. */
  readonly stuckMs: number;
}

export interface PlanOptions {
  readonly transport: TransportName;
  readonly can: Abilities;
  readonly rate: number;
  /** Only kinds whose name holds one of these texts; none: all kinds. */
  readonly focus: readonly string[];
}

const STUCK_MS = 90_000;
/** A cluster is six more processes: not too often. */
const CLUSTERS = 0.08;
const STEPS = [2, 3, 3, 4] as const;

export function planOf(seed: number, { transport, can, focus, rate }: PlanOptions): Plan {
  const dice = new Dice(seed * 2 + (transport === 'kafka' ? 1 : 0));
  const wanted = FAULT_KINDS.filter(({ name }) => focus.length === 0 || focus.some((text) => name.includes(text)));
  if (wanted.length === 0) throw new Error(`no kind of fault holds ${focus.join(' or ')}`);
  // apart, so that seeds without a cluster stay what they were
  const clusters = new Dice(seed * 104_729);
  const choose = (): Setting => {
    const chosen = chooseSetting(dice, transport, can, rate);
    return clusters.chance(CLUSTERS) ? onCluster(chosen) : chosen;
  };
  let setting = choose();
  // with a focus the setting is chosen so that it fits at least one of the kinds
  while (!wanted.some(({ fits }) => fits(setting))) setting = choose();
  let early = dice.chance(0.2);
  let fitting = wanted.filter(({ fits }) => fits(setting));
  // where deletions are soon forgotten, a writer that any other fault holds up halts, and rightly
  if (setting.shortRetention) {
    const longer = { ...setting, shortRetention: false, compactionMs: null, transportOptions: {} };
    const made = fitting.filter(({ fits }) => !fits(longer));
    if (made.length > 0) fitting = made;
    else setting = longer;
  }
  const steps: Step[] = [];
  let final = false;
  for (let index = dice.pick(STEPS); index > 0 && !final; index -= 1) {
    const kind = dice.weighted(fitting);
    final = kind.ends === true;
    steps.push({
      kind,
      beforeMs: dice.integer(100, 1500),
      holdMs: dice.integer(...kind.holdMs),
      overlaps: !final && dice.chance(0.2),
      dice: new Dice(seed * 1009 + index),
    });
  }
  // chosen apart, and last: what destroys things follows the remedies for files
  const files = steps.some(({ kind }) => kind.needsFile === true || kind.ends === true);
  const other = new Dice(seed * 7919);
  if (!files && other.chance(0.3)) setting = { ...setting, checkpoint: other.pick(['mysql', 'topic']) };
  early &&= !steps.some(({ kind }) => kind.settled);
  return { seed, setting, early, steps: apart(lone(steps)), stuckMs: STUCK_MS };
}

/** One that takes half a minute by itself has its seed for itself. */
function lone(steps: readonly Step[]): readonly Step[] {
  const patient = steps.find(({ kind }) => kind.patient);
  return patient === undefined ? steps : [patient];
}

/** Those that are to be alone overlap with nothing. */
function apart(steps: readonly Step[]): readonly Step[] {
  return steps.map((step, index) => {
    const isAlone = step.kind.alone === true || steps[index + 1]?.kind.alone === true;
    return isAlone ? { ...step, overlaps: false } : step;
  });
}

/** One line that says what a seed is. */
export function describe({ setting, steps, early }: Plan): string {
  const { transport, source, sinks, oneProcess, writers, partitions, ownClock, ownDisk, checkpoint } = setting;
  const shape = oneProcess ? 'one process' : `${writers} writers a sink`;
  const faults = steps.map(({ kind, overlaps }) => `${kind.name}${overlaps ? ' +' : ''}`).join(', ');
  const more = [
    setting.cluster ? 'redis cluster' : '',
    early ? 'early' : '',
    ownClock ? 'own clock' : '',
    ownDisk ? 'own disk' : '',
    checkpoint === 'file' ? '' : `checkpoint ${checkpoint}`,
  ].filter((text) => text !== '');
  return `${source} > ${transport} (${partitions}) > ${sinks.join('+')}, ${[shape, ...more].join(', ')}: ${faults}`;
}
