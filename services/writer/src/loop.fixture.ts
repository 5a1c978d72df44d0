/** A partition loop over a log and a sink in memory. */

import { type Logger, silentLogger } from '@mysync/core';
import { createMetrics } from '@mysync/telemetry';
import type { DeadLetters } from './dead-letters.ts';
import type { KeyedChange } from './parked-keys.ts';
import { FastClock, MemorySink, ScriptedPartition, turnsUntil } from './partition.fixture.ts';
import { PartitionLoop } from './partition-loop.ts';
import type { PoisonPolicy } from './poison-handler.ts';
import { TestLog } from './test-log.fixture.ts';

/** Dead letters in memory. */
export class MemoryLetters implements DeadLetters {
  readonly letters: { readonly key: string; readonly offset: number; readonly error: unknown }[] = [];
  /** Called before each one; may throw. */
  onPut: () => void = () => undefined;

  put({ key, change }: KeyedChange, error: unknown): Promise<boolean> {
    this.onPut();
    this.letters.push({ key, offset: change.offset, error });
    return Promise.resolve(true);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

export interface SetUp {
  readonly log?: TestLog;
  readonly sink?: MemorySink;
  readonly assigned?: ScriptedPartition;
  readonly maxChanges?: number;
  readonly handoverMs?: number;
  readonly clock?: FastClock;
  readonly deleteRetentionMs?: number;
  readonly onPoison?: PoisonPolicy;
  readonly maxParkedKeys?: number;
  readonly replayMs?: number;
  readonly deadLetters?: DeadLetters;
  readonly incomplete?: boolean;
  readonly logger?: Logger;
}

export function setUp(given: SetUp = {}) {
  const { log = new TestLog(), sink = new MemorySink(), clock = new FastClock(), maxChanges = 100 } = given;
  const assigned = given.assigned ?? new ScriptedPartition({ log, nowMs: () => clock.now() });
  const metrics = createMetrics();
  const loop = new PartitionLoop({
    assigned,
    log: log.reader,
    source: 's',
    sinkName: 'memory',
    sink,
    maxChanges,
    commitIntervalMs: 0,
    handoverMs: given.handoverMs ?? 60_000,
    deleteRetentionMs: given.deleteRetentionMs ?? null,
    onPoison: () => given.onPoison ?? 'halt',
    maxParkedKeys: given.maxParkedKeys ?? 100,
    replayMs: given.replayMs ?? 60_000,
    isLogIncomplete: () => Promise.resolve(given.incomplete ?? false),
    deadLetters: given.deadLetters ?? new MemoryLetters(),
    clock,
    logger: given.logger ?? silentLogger,
    metrics,
  });
  sink.onDoubt(() => loop.doubt());
  const done = loop.run();
  const stop = async (): Promise<void> => {
    assigned.revoke.abort();
    await done;
  };
  const applied = (next: number): Promise<void> => turnsUntil(`the marker at ${next}`, () => sink.next === next);
  const halted = async (): Promise<string> => {
    await turnsUntil('halted', () => loop.status().state === 'halted');
    return loop.status().detail;
  };
  return { log, sink, assigned, clock, loop, done, stop, applied, halted, metrics };
}
