import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CheckpointJudge } from './checkpoint-judge.ts';
import { changeMessage } from './message.fixture.ts';

const FILE = 'binlog.000003';

interface Checkpoint {
  readonly epoch?: number;
  readonly position: number;
  /** Offset of the mark of each partition. */
  readonly marks: readonly number[];
  readonly topic?: string;
}

function checkpoint({ epoch = 1, position, marks, topic = 't' }: Checkpoint): string {
  const body = {
    position: { file: FILE, offset: position, gtidSet: '' },
    epoch,
    topic: { name: 'shop', id: topic, partitions: marks.length },
    partitions: marks.map((offset) => ({ epoch, generation: 0, sequence: offset, offset })),
  };
  return `{"format":"mysync-checkpoint"}\n${JSON.stringify(body)}\n`;
}

/** Messages of partition 0: epoch, sequence, begin of the transaction, operation; the first at offset 1. */
function offer(judge: CheckpointJudge, ...messages: readonly (readonly [number, number, number, number?])[]): void {
  for (const [index, [epoch, sequence, offset, operation = 2]] of messages.entries()) {
    judge.offer(0, index + 1, changeMessage({ epoch, sequence, operation, file: FILE, offset }));
  }
}

test('a checkpoint that covers what lies before its position is right', () => {
  const judge = new CheckpointJudge();
  judge.see(checkpoint({ position: 300, marks: [2] }), [3]);
  judge.see(checkpoint({ position: 400, marks: [3] }), [9]);
  offer(judge, [1, 1, 100], [1, 2, 200], [1, 3, 300], [1, 4, 400]);
  assert.deepEqual(judge.complaints, []);
  assert.equal(judge.held, 3);
});

test('a change before the position, and behind the mark, was not acked', () => {
  const judge = new CheckpointJudge();
  judge.see(checkpoint({ position: 400, marks: [2] }), [9]);
  offer(judge, [1, 1, 100], [1, 2, 200], [1, 3, 300], [1, 4, 300], [1, 5, 400]);
  assert.equal(judge.complaints.length, 1);
  assert.match(judge.complaints[0] ?? '', /binlog.000003:400, partition 0 at offset 2 .*:300 \(epoch 1, sequence 3\)/);
});

test('one that was not in the log at all when the checkpoint was seen, whoever published it', () => {
  const judge = new CheckpointJudge();
  judge.see(checkpoint({ epoch: 5, position: 400, marks: [2] }), [3]);
  offer(judge, [1, 1, 100], [1, 2, 200], [1, 3, 300]);
  assert.match(judge.complaints.join(), /at offset 2 of 3, but the change .*:300/);
});

test('the tail of a predecessor lies behind the marks until the position has passed it', () => {
  const judge = new CheckpointJudge();
  judge.see(checkpoint({ epoch: 2, position: 400, marks: [1] }), [4]);
  offer(judge, [1, 1, 100], [1, 2, 200], [1, 3, 300], [2, 4, 400]);
  assert.deepEqual(judge.complaints, []);
});

test('what is there once more, heartbeats and fences say nothing', () => {
  const judge = new CheckpointJudge();
  judge.see(checkpoint({ position: 300, marks: [2] }), [9]);
  offer(judge, [1, 1, 100], [1, 2, 200], [1, 2, 200], [1, 3, 200, 8], [0, 0, 0, 9]);
  assert.deepEqual(judge.complaints, []);
});

test('a mark at the end of the log is ahead of it', () => {
  const judge = new CheckpointJudge();
  judge.see(checkpoint({ position: 300, marks: [4] }), [4]);
  assert.match(judge.complaints.join(), /partition 0 at offset 4, but the log ends at 4/);
});

test('a log that was made anew has nothing to do with checkpoints of the old one', () => {
  const judge = new CheckpointJudge();
  judge.see(checkpoint({ position: 900, marks: [1] }), [9]);
  judge.see(checkpoint({ position: 100, marks: [-1], topic: 'another' }), [1]);
  offer(judge, [2, 1, 100], [2, 2, 200]);
  assert.deepEqual(judge.complaints, []);
  assert.equal(judge.looks, 2);
});

test('of many that were seen some are kept, over the whole run', () => {
  const judge = new CheckpointJudge();
  for (let n = 1; n <= 5000; n += 1) judge.see(checkpoint({ position: 100 * n, marks: [n] }), [n + 1]);
  // wrong for the 101st to the 299th only
  judge.offer(0, 300, changeMessage({ epoch: 1, sequence: 1, operation: 1, file: FILE, offset: 10_000 }));
  assert.equal(judge.complaints.length, 1);
});
