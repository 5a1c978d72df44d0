import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Logger, silentLogger } from '@mysync/core';
import { sinkErrors } from '@mysync/sink';
import { createMetrics } from '@mysync/telemetry';
import { FastClock } from './partition.fixture.ts';
import { Retries } from './retries.ts';

/** Fails for that long, by the clock; gives the pauses, and when it was told. */
async function awayFor(ms: number, failure: () => Error): Promise<{ slept: number[]; toldMs: number[] }> {
  const clock = new FastClock();
  const begin = clock.ms;
  const toldMs: number[] = [];
  const logger: Logger = { ...silentLogger, warn: () => toldMs.push(clock.ms - begin) };
  const retries = new Retries({
    signal: new AbortController().signal,
    labels: { sink: 'redis', source: 's', partition: '0' },
    onRetry: () => undefined,
    clock,
    logger,
    metrics: createMetrics(),
  });
  const answer = await retries.call(async () => {
    if (clock.ms - begin < ms) throw failure();
    return 'here';
  });
  assert.equal(answer, 'here');
  return { slept: clock.slept, toldMs };
}

test('a sink that was away for ten minutes is found within a second of its return, and told of each minute', async () => {
  const { slept, toldMs } = await awayFor(600_000, () => sinkErrors.SINK_UNREACHABLE({ message: 'refused' }));
  assert.ok(Math.max(...slept) <= 1_000, `${Math.max(...slept)}`);
  assert.equal(toldMs[0], 0);
  assert.ok(toldMs.length >= 9 && toldMs.length <= 11, `${toldMs}`);
});

test('a sink that is overloaded is left alone for longer and longer', async () => {
  const { slept } = await awayFor(600_000, () => sinkErrors.SINK_OVERLOADED({ message: 'no memory left' }));
  assert.ok(Math.max(...slept) > 10_000, `${Math.max(...slept)}`);
});
