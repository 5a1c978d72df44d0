import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type AckOutcome, AckWindow, BATCH_TRANSITIONS, type BatchState } from './ack-window.ts';
import { NaiveWindow } from './naive-window.ts';

const LIMITS = { firstSequence: 1, maxItems: 100, maxBytes: 10_000, maxOpen: 5 };

function windowOf(items: number, options: Partial<typeof LIMITS> = {}): AckWindow<string> {
  const window = new AckWindow<string>({ ...LIMITS, ...options });
  for (let i = 1; i <= items; i++) window.put(`item ${i}`, 10);
  return window;
}

function take(window: AckWindow<string>, items = 1): number {
  const batch = window.take(items, 1e6);
  assert.ok(batch);
  return batch.id;
}

/** A halted window takes no part in what follows, so comparing outcomes needs the public fields only. */
function plain(outcome: AckOutcome): unknown {
  if (outcome.kind !== 'advanced') return outcome;
  const passed = outcome.passed.map(({ generation, firstSequence, count, baseOffset }) => {
    return { generation, firstSequence, count, baseOffset };
  });
  return { ...outcome, passed };
}

test('sequences are contiguous from the first one and batches are contiguous runs of them', () => {
  const window = new AckWindow<string>({ ...LIMITS, firstSequence: 42 });
  assert.equal(window.put('a', 1), 42);
  assert.equal(window.put('b', 1), 43);
  assert.equal(window.put('c', 1), 44);
  const first = window.take(2, 1e6);
  assert.deepEqual(first, { id: 0, generation: 0, base: 42, firstSequence: 42, items: ['a', 'b'], bytes: 2 });
  assert.deepEqual(window.take(2, 1e6)?.items, ['c']);
  assert.equal(window.take(2, 1e6), null);
});

test('a full window refuses, in items and in bytes, and one item of any size passes', () => {
  const window = windowOf(0, { maxItems: 2, maxBytes: 100 });
  window.put('huge', 1000);
  assert.equal(window.canPut(), false);
  assert.throws(() => window.put('more', 1), { code: 'INTERNAL' });
  assert.deepEqual(window.take(10, 50)?.items, ['huge']);
  window.acked(0, 0);
  assert.equal(window.bytes, 0);
  window.put('a', 1);
  window.put('b', 1);
  assert.equal(window.canPut(), false);
});

test('at most maxOpen batches are open', () => {
  const window = windowOf(5, { maxOpen: 2 });
  const first = take(window);
  const second = take(window);
  assert.equal(window.take(1, 1e6), null);
  window.acked(second, 1);
  take(window);
  window.acked(first, 0);
  assert.ok(window.take(1, 1e6));
});

test('when a batch fails, everything goes again from the first one whose ack came while it was open', () => {
  const window = windowOf(4);
  const [one, two, three, four] = [take(window), take(window), take(window), take(window)];
  assert.equal(window.acked(one as number, 0).kind, 'held');
  assert.equal(window.acked(two as number, 1).kind, 'held');
  assert.equal(window.acked(four as number, 3).kind, 'held');
  assert.deepEqual(window.failed(three as number), { kind: 'rewind', reason: 'failed' });
  window.rewind();
  // 3 was open when 1 and 2 were acked, so it may lie before them in the log: they go again, too.
  assert.deepEqual(window.take(9, 1e6), {
    id: 4,
    generation: 1,
    base: 1,
    firstSequence: 1,
    items: ['item 1', 'item 2', 'item 3', 'item 4'],
    bytes: 40,
  });
});

test('of acks 1, 2 and 4 with 3 failed, 3 and 4 go again when 1 and 2 were acked before 3 was sent', () => {
  const window = windowOf(4);
  window.acked(take(window), 0);
  window.acked(take(window), 1);
  const three = take(window);
  window.acked(take(window), 3);
  window.failed(three);
  window.rewind();
  assert.deepEqual(window.take(9, 1e6), {
    id: 4,
    generation: 1,
    base: 3,
    firstSequence: 3,
    items: ['item 3', 'item 4'],
    bytes: 20,
  });
});

test('acks may arrive in any order as long as the batches were stored in the order sent', () => {
  const window = windowOf(6);
  const [a, b, c] = [take(window, 2), take(window, 2), take(window, 2)];
  assert.equal(window.acked(c as number, 104).kind, 'held');
  assert.equal(window.acked(a as number, 100).kind, 'held');
  assert.deepEqual(plain(window.acked(b as number, 102)), {
    kind: 'advanced',
    sequence: 6,
    offset: 105,
    items: 6,
    passed: [
      { generation: 0, firstSequence: 1, count: 2, baseOffset: 100 },
      { generation: 0, firstSequence: 3, count: 2, baseOffset: 102 },
      { generation: 0, firstSequence: 5, count: 2, baseOffset: 104 },
    ],
  });
});

test('the base waits for a batch that was sent before the ack, which then shows another order', () => {
  const window = windowOf(2);
  const [one, two] = [take(window), take(window)];
  assert.equal(window.acked(one as number, 8).kind, 'held');
  assert.deepEqual(window.acked(two as number, 7), { kind: 'rewind', reason: 'order' });
  assert.equal(window.halted, true);
  assert.equal(window.take(1, 1e6), null);
  window.rewind();
  assert.deepEqual(window.take(9, 1e6)?.items, ['item 1', 'item 2']);
});

test('the base does not wait for a batch that was sent after the ack', () => {
  const window = windowOf(3);
  const [one, two] = [take(window), take(window)];
  window.acked(one as number, 0);
  take(window);
  assert.deepEqual(plain(window.acked(two as number, 1)), {
    kind: 'advanced',
    sequence: 1,
    offset: 0,
    items: 1,
    passed: [{ generation: 0, firstSequence: 1, count: 1, baseOffset: 0 }],
  });
});

test('late acks and failures of dead and of passed batches change nothing', () => {
  const window = windowOf(3);
  const passed = take(window);
  window.acked(passed, 0);
  const dead = take(window);
  window.rewind();
  const again = take(window, 2);
  for (const id of [passed, dead]) {
    assert.deepEqual(window.acked(id, 5), { kind: 'ignored' });
    assert.deepEqual(window.failed(id), { kind: 'ignored' });
  }
  assert.equal(window.base, 2);
  assert.equal(window.acked(again, 9).kind, 'advanced');
  assert.equal(window.length, 0);
});

test('a batch stored below what was passed tells that the log has shrunk', () => {
  const window = new AckWindow<string>({ ...LIMITS, lastOffset: 10 });
  window.put('a', 1);
  assert.deepEqual(window.acked(take(window), 10), { kind: 'rewind', reason: 'log-shrank' });
});

test('the age of the oldest open batch is told', () => {
  const window = windowOf(3);
  assert.equal(window.oldestOpenSince(), null);
  const first = window.take(1, 1e6, 1000);
  const second = window.take(1, 1e6, 2000);
  assert.equal(window.oldestOpenSince(), 1000);
  window.acked(first?.id as number, 0);
  assert.equal(window.oldestOpenSince(), 2000);
  window.acked(second?.id as number, 1);
  assert.equal(window.oldestOpenSince(), null);
});

test('every cell of the transition table', () => {
  const reach: Record<BatchState, () => { window: AckWindow<string>; id: number }> = {
    unsent: () => ({ window: windowOf(3), id: 0 }),
    open: () => {
      const window = windowOf(3);
      return { window, id: take(window) };
    },
    acked: () => {
      const window = windowOf(3);
      const id = take(window);
      take(window);
      window.acked(id, 5);
      return { window, id };
    },
    gone: () => {
      const window = windowOf(3);
      const id = take(window);
      window.rewind();
      return { window, id };
    },
  };
  for (const state of Object.keys(BATCH_TRANSITIONS) as BatchState[]) {
    for (const event of ['acked', 'failed'] as const) {
      const { window, id } = reach[state]();
      assert.equal(window.batchState(id), state);
      const fire = (): AckOutcome => (event === 'acked' ? window.acked(id, 9) : window.failed(id));
      const action = BATCH_TRANSITIONS[state][event];
      if (action === 'misuse') assert.throws(fire, { code: 'INTERNAL' });
      else if (action === 'ignore') assert.deepEqual(fire(), { kind: 'ignored' });
      else if (action === 'halt') assert.deepEqual(fire(), { kind: 'rewind', reason: 'failed' });
      else assert.equal(fire().kind, 'advanced');
    }
  }
});

class Model {
  readonly naive: NaiveWindow<number>;
  /** Per sent batch where the broker stored it; -1 as long as it did not. */
  readonly offsets: number[] = [];
  readonly puts: number[] = [];
  /** What the real window said has left it. */
  readonly passed: number[] = [];
  #end = 0;

  constructor(naive: NaiveWindow<number>) {
    this.naive = naive;
  }

  store(): number {
    this.#end += 10;
    return this.#end;
  }
}

type Real = AckWindow<number>;

const commands = [
  fc.tuple(fc.constant('put' as const), fc.nat(60)),
  fc.tuple(fc.constant('put' as const), fc.nat(60)),
  fc.tuple(fc.constant('take' as const), fc.nat(5)),
  fc.tuple(fc.constant('take' as const), fc.nat(5)),
  fc.tuple(fc.constant('store' as const), fc.nat(20)),
  fc.tuple(fc.constant('acked' as const), fc.nat(20)),
  fc.tuple(fc.constant('acked' as const), fc.nat(20)),
  fc.tuple(fc.constant('acked' as const), fc.nat(20)),
  fc.tuple(fc.constant('failed' as const), fc.nat(100)),
  fc.tuple(fc.constant('rewind' as const), fc.nat(9)),
];
type Step = readonly [kind: 'put' | 'take' | 'store' | 'acked' | 'failed' | 'rewind', n: number];

class WindowCommand implements fc.Command<Model, Real> {
  readonly step: Step;

  constructor(step: Step) {
    this.step = step;
  }

  check(): boolean {
    return true;
  }

  run(model: Model, real: Real): void {
    const { naive, offsets } = model;
    const [kind, n] = this.step;
    assert.equal(real.canPut(), naive.canPut());
    // Ids count from the newest sent batch backwards, so that most commands meet a live one.
    const id = offsets.length - 1 - n;
    if (kind === 'put' && naive.canPut()) {
      assert.equal(real.put(n, n), naive.put(n, n));
      model.puts.push(n);
    } else if (kind === 'take') {
      const batch = real.take(n, 100);
      assert.deepEqual(batch, naive.take(n, 100));
      if (batch !== null) offsets.push(n < 4 ? model.store() : -1);
    } else if (kind === 'store' && id >= 0 && offsets[id] === -1) {
      offsets[id] = model.store();
    } else if (kind === 'acked' && id >= 0 && offsets[id] !== -1) {
      assert.deepEqual(plain(real.acked(id, offsets[id] as number)), naive.acked(id, offsets[id] as number));
    } else if (kind === 'failed' && id >= 0) {
      assert.deepEqual(real.failed(id), naive.failed(id));
    } else if (kind === 'rewind' && (n === 0 || real.halted)) {
      real.rewind();
      naive.rewind();
    }
    assert.equal(real.length, naive.length);
    assert.deepEqual(model.passed, model.puts.slice(0, model.puts.length - real.length));
    assert.equal(real.bytes, naive.bytes);
    assert.equal(real.base, naive.base);
    assert.equal(real.generation, naive.generation);
    for (let i = 0; i <= offsets.length; i++) assert.equal(real.batchState(i), naive.batchState(i));
  }

  toString(): string {
    return this.step.join(' ');
  }
}

test('behaves as the naive window under any calls', () => {
  const arbitrary = fc.oneof(...commands).map((step) => new WindowCommand(step as Step));
  fc.assert(
    fc.property(fc.commands([arbitrary], { maxCommands: 200, size: '+2' }), (sequence) => {
      const options = { firstSequence: 7, maxItems: 12, maxBytes: 400, maxOpen: 3 };
      fc.modelRun(() => {
        const model = new Model(new NaiveWindow<number>(options));
        return { model, real: new AckWindow<number>({ ...options, onPassed: (item) => model.passed.push(item) }) };
      }, sequence);
    }),
    { numRuns: 400 },
  );
});

test('two million items pass through a window of ten thousand', (context) => {
  const window = new AckWindow<object>({ ...LIMITS, maxItems: 10_000, maxBytes: 1e9 });
  const item = {};
  let offset = 0;
  const started = process.cpuUsage();
  for (let n = 0; n < 2e6; n += 1000) {
    while (window.canPut() && window.unsent < 1000) window.put(item, 250);
    const batch = window.take(1000, 1e6);
    assert.ok(batch);
    window.acked(batch.id, offset);
    offset += batch.items.length;
  }
  const seconds = process.cpuUsage(started).user / 1e6;
  assert.equal(window.base, 2e6 + 1);
  context.diagnostic(`${(2 / seconds).toFixed(1)} million items per CPU second`);
});
