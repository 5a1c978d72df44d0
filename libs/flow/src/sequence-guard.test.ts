import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type GuardState, guardStateAt, initialGuardState, SequenceGuard, type Verdict } from './sequence-guard.ts';

const START = guardStateAt({ epoch: 2, generation: 1, sequence: 10, offset: 100 });

/** The rules written down a second time, as plainly as possible: numbers of one pair, absent offsets as a set. */
class PlainGuard {
  pair: [number, number];
  sequence: number;
  accepted: number;
  seen = new Set<number>();
  closed = false;
  readonly strict: boolean;

  constructor(state: GuardState, strict: boolean) {
    this.pair = [state.epoch, state.generation];
    this.sequence = state.sequence;
    this.accepted = state.offset;
    this.strict = strict;
  }

  offer(offset: number, pair: [number, number], base: number, sequence: number): Verdict {
    let absent = 0;
    for (let o = this.accepted + 1; o < offset; o++) if (!this.seen.has(o)) absent++;
    this.seen.add(offset);
    const order = pair[0] - this.pair[0] || pair[1] - this.pair[1];
    if (order < 0) return 'stale';
    if (order > 0) {
      if (this.strict && base - this.sequence > 1) {
        this.closed = true;
        return 'early';
      }
      this.pair = pair;
      this.closed = false;
      this.sequence = base - 1;
    }
    if (this.strict && this.closed) return 'early';
    if (sequence <= this.sequence) return 'duplicate';
    const skipped = sequence - this.sequence - 1;
    const allowed = this.strict ? 0 : absent;
    if (skipped > allowed) {
      this.closed = true;
      return 'early';
    }
    this.sequence = sequence;
    this.accepted = offset;
    this.seen.clear();
    return 'accept';
  }
}

test('the rules, one by one', () => {
  const guard = new SequenceGuard(START);
  const offer = (...record: [number, number, number, number, number]): string => {
    return `${guard.offer(...record)} ${guard.lastRule}`;
  };
  assert.equal(offer(101, 2, 1, 1, 11), 'accept next');
  assert.equal(offer(102, 2, 0, 1, 12), 'stale lower-generation');
  assert.equal(offer(103, 1, 9, 1, 12), 'stale lower-generation');
  assert.equal(offer(104, 2, 1, 1, 11), 'duplicate not-above');
  assert.equal(offer(105, 2, 1, 1, 13), 'early gap');
  assert.equal(offer(105, 2, 1, 1, 12), 'duplicate offset-again');
  assert.equal(offer(106, 2, 2, 12, 12), 'accept next');
  assert.equal(offer(107, 3, 0, 12, 12), 'accept next');
  assert.equal(offer(110, 3, 0, 12, 16), 'early gap');
  assert.equal(offer(111, 3, 0, 12, 15), 'accept compacted-gap');
  assert.deepEqual(
    { ...guard.counts },
    {
      accept: 4,
      duplicate: 2,
      stale: 2,
      early: 2,
      skipped: 0,
      takeovers: 2,
      compactedGaps: 1,
      compactedSequences: 2,
    },
  );
});

test('a gap is explained by absent offsets only, not by records that were seen', () => {
  const guard = new SequenceGuard(START);
  guard.skip(101);
  guard.offer(102, 2, 0, 1, 11);
  assert.equal(guard.offer(103, 2, 1, 1, 12), 'early');
  assert.equal(guard.offer(105, 2, 1, 1, 12), 'accept');
});

test('an operation fence counts as seen, is not judged and changes no number', () => {
  const guard = new SequenceGuard(START);
  guard.skip(101);
  assert.deepEqual(guard.state(), { ...START, seenSince: 1, nextOffset: 102 });
  guard.skip(101);
  assert.equal(guard.counts.skipped, 1);
});

test('an open gap is told until the next generation closes it', () => {
  const guard = new SequenceGuard(START);
  assert.equal(guard.openGapSince, null);
  guard.offer(101, 2, 1, 1, 12);
  guard.offer(102, 2, 1, 1, 13);
  assert.deepEqual([guard.openGapSince, guard.openGapCount], [101, 2]);
  const restored = new SequenceGuard(guard.state());
  assert.deepEqual([restored.openGapSince, restored.openGapCount, restored.closed], [101, 0, true]);
  guard.offer(103, 2, 2, 11, 11);
  assert.deepEqual([guard.openGapSince, guard.openGapCount, guard.closed], [null, 0, false]);
});

test('strict: no gap is explained, an anomaly closes its generation, one that begins beyond F + 1 is not taken over', () => {
  const guard = new SequenceGuard(START, { strict: true });
  assert.equal(guard.offer(105, 2, 1, 1, 12), 'early');
  assert.equal(guard.offer(106, 2, 1, 1, 11), 'early');
  assert.equal(guard.lastRule, 'closed');
  assert.equal(guard.offer(107, 2, 2, 12, 12), 'early');
  assert.equal(guard.lastRule, 'base-beyond');
  assert.equal(guard.offer(108, 2, 3, 11, 11), 'accept');
});

test('a consumer without state begins where the log begins', () => {
  const guard = new SequenceGuard(initialGuardState(7));
  assert.equal(guard.state().nextOffset, 7);
  assert.equal(guard.offer(9, 1, 0, 1, 3), 'accept');
  assert.equal(guard.lastRule, 'compacted-gap');
  const tooFew = new SequenceGuard(initialGuardState(7));
  assert.equal(tooFew.offer(8, 1, 0, 1, 3), 'early');
});

const record = fc.record({
  step: fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.integer({ min: 2, max: 5 }) }),
  epoch: fc.integer({ min: 0, max: 2 }),
  generation: fc.integer({ min: 0, max: 2 }),
  // Mostly the pair already reached and a sequence near F: otherwise nearly everything is stale.
  same: fc.integer({ min: 0, max: 3 }),
  base: fc.integer({ min: -3, max: 2 }),
  ahead: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, { weight: 2, arbitrary: fc.integer({ min: -2, max: 5 }) }),
  fence: fc.integer({ min: 0, max: 9 }),
  restart: fc.integer({ min: 0, max: 9 }),
});

test('judges any records as the plainly written rules do, also across restarts from its serialised state', () => {
  const verdicts = new Set<string>();
  fc.assert(
    fc.property(fc.boolean(), fc.array(record, { maxLength: 60, size: '+2' }), (strict, records) => {
      const plain = new PlainGuard(START, strict);
      let guard = new SequenceGuard(START, { strict });
      let offset = START.offset;
      for (const { step, epoch, generation, same, base, ahead, fence, restart } of records) {
        offset += step;
        if (restart === 0) guard = new SequenceGuard(JSON.parse(JSON.stringify(guard.state())), { strict });
        if (fence === 0) {
          guard.skip(offset);
          plain.seen.add(offset);
          continue;
        }
        const pair: [number, number] = same > 0 ? plain.pair : [2 + epoch, generation];
        const first = Math.max(plain.sequence + base, 1);
        const sequence = Math.max(plain.sequence + ahead, 1);
        const verdict = guard.offer(offset, pair[0], pair[1], first, sequence);
        assert.equal(verdict, plain.offer(offset, pair, first, sequence));
        assert.deepEqual(
          [guard.epoch, guard.generation, guard.sequence, guard.closed],
          [...plain.pair, plain.sequence, plain.closed],
        );
        verdicts.add(`${strict} ${verdict} ${guard.lastRule}`);
      }
    }),
    { numRuns: 1000 },
  );
  assert.deepEqual([...verdicts].sort(), [
    'false accept compacted-gap',
    'false accept next',
    'false duplicate not-above',
    'false early gap',
    'false stale lower-generation',
    'true accept next',
    'true duplicate not-above',
    'true early base-beyond',
    'true early closed',
    'true early gap',
    'true stale lower-generation',
  ]);
});

test('the cost of a record', (context) => {
  const guard = new SequenceGuard(initialGuardState(0));
  const started = process.cpuUsage();
  for (let offset = 0; offset < 5e6; offset++) guard.offer(offset, 1, 0, 1, offset + 1);
  const { user } = process.cpuUsage(started);
  assert.equal(guard.sequence, 5e6);
  context.diagnostic(`${(5e6 / user).toFixed(0)} million records per CPU second`);
});
