/** How fast things have to be. A goal that was missed makes no run fail: the machine may be slow; but every run says so. */

/** A seed, from beginning to end. */
export const SEED_SECONDS = 60;

const PROCESS_DEATH = 15;
const LEADER_DEATH = 30;

/** The p99 of the recovery, in seconds, by kind of fault. Kinds without a goal are not here. */
export const RECOVERY_GOALS: Readonly<Record<string, number>> = {
  'kill reader': PROCESS_DEATH,
  'kill writer': PROCESS_DEATH,
  'reader killed inside a transaction': PROCESS_DEATH,
  'reader killed over a full log': PROCESS_DEATH,
  'reader killed while a leader is frozen': PROCESS_DEATH,
  'kill a leader': LEADER_DEATH,
  'freeze a leader': LEADER_DEATH,
};

/** A goal, and the p99 that is above it; seconds. */
export interface Missed {
  readonly kind: string;
  readonly p99: number;
  readonly goal: number;
  /** Of how many faults. */
  readonly count: number;
}

export function missedGoals(
  recoverySeconds: Readonly<Record<string, { readonly p99: number; readonly count: number }>>,
): readonly Missed[] {
  return Object.entries(recoverySeconds).flatMap(([kind, { p99, count }]) => {
    const goal = RECOVERY_GOALS[kind];
    // under it, not at it
    return goal === undefined || p99 < goal ? [] : [{ kind, p99, goal, count }];
  });
}
