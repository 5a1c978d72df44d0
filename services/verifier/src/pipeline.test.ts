import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Checkpoint } from '@mysync/checkpoint';
import { MysyncError, systemClock } from '@mysync/core';
import type { Sink } from '@mysync/sink';
import { Again } from './again.ts';
import { Pipeline, type PipelineOptions } from './pipeline.ts';

const lost = new MysyncError('LOST', { remedy: '', retriable: true }, { message: 'the connection is gone' });
const { signal } = new AbortController();
const position = { file: 'bin.000001', offset: 100, gtidSet: '' };
const checkpoint = {
  position,
  topic: { name: 'shop', id: 't', partitions: 0 },
  partitions: [],
  transactionCounter: 7,
} as unknown as Checkpoint;

function pipeline(options: Partial<PipelineOptions>): Pipeline {
  const clock = { ...systemClock, sleep: () => Promise.resolve() };
  return new Pipeline({
    loadCheckpoint: () => Promise.resolve(checkpoint),
    sink: {} as Sink,
    again: new Again({ clock, signal, patienceMs: 5_000, onRetry: () => undefined }),
    clock,
    patienceMs: 5_000,
    ...options,
  });
}

test('a checkpoint that cannot be read for now is looked at again', async () => {
  let left = 3;
  const loadCheckpoint = (): Promise<Checkpoint> => (left-- > 0 ? Promise.reject(lost) : Promise.resolve(checkpoint));
  const { transactionCounter } = await pipeline({ loadCheckpoint }).settled(position, signal);
  assert.equal(transactionCounter, 7);
});

test('who waits in vain is told so at once, not when patience is at an end', async () => {
  const ended = new MysyncError('DRILL_PROCESS_ENDED', { remedy: '', retriable: false }, { message: 'reader ended' });
  let looks = 0;
  const requireAlive = (): void => {
    looks += 1;
    if (looks > 2) throw ended;
  };
  // the reader never gets there
  const loadCheckpoint = (): Promise<Checkpoint> =>
    Promise.resolve({ ...checkpoint, position: { ...position, offset: 4 } });
  await assert.rejects(pipeline({ loadCheckpoint, requireAlive }).settled(position, signal), ended);
  assert.equal(looks, 3);
});
