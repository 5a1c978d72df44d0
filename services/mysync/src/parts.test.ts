import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorCatalogue, silentLogger, systemClock } from '@mysync/core';
import { transportErrors } from '@mysync/transport';
import { type Part, part, runParts } from './parts.ts';

/** A part that writes down when it is stopped, and ends when it is told to. */
class FakePart implements Part {
  readonly name: string;
  readonly #log: string[];
  readonly #ended: Promise<void>;
  end!: () => void;
  fail!: (error: Error) => void;

  constructor(name: string, log: string[]) {
    this.name = name;
    this.#log = log;
    this.#ended = new Promise((resolve, reject) => {
      this.end = resolve;
      this.fail = reject;
    });
    this.#ended.catch(() => undefined);
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#log.push(`${this.name} runs`);
    signal.addEventListener('abort', () => this.#log.push(`${this.name} is stopped`));
    await this.#ended;
    this.#log.push(`${this.name} has ended`);
  }

  refresh(): void {}

  health() {
    return { name: this.name, alive: true, ready: true, detail: '' };
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('writers go on until the readers have drained', async () => {
  const log: string[] = [];
  const [reader, writer] = [new FakePart('reader', log), new FakePart('writer', log)];
  const stop = new AbortController();
  const running = runParts([reader], [writer], stop.signal, () => undefined);
  await turn();
  stop.abort();
  await turn();
  assert.deepEqual(log, ['reader runs', 'writer runs', 'reader is stopped']);
  reader.end();
  await turn();
  assert.deepEqual(log.slice(3), ['reader has ended', 'writer is stopped']);
  writer.end();
  await running;
});

test('writers alone stop at the signal', async () => {
  const log: string[] = [];
  const writer = new FakePart('writer', log);
  const stop = new AbortController();
  const running = runParts([], [writer], stop.signal, () => undefined);
  await turn();
  assert.deepEqual(log, ['writer runs']);
  stop.abort();
  await turn();
  assert.deepEqual(log, ['writer runs', 'writer is stopped']);
  writer.end();
  await running;
});

test('the first failure stops the others and is thrown once they have ended', async () => {
  for (const failing of ['reader', 'writer'] as const) {
    const log: string[] = [];
    const parts = { reader: new FakePart('reader', log), writer: new FakePart('writer', log) };
    const failures: string[] = [];
    const running = runParts([parts.reader], [parts.writer], new AbortController().signal, (name) =>
      failures.push(name),
    );
    let settled = false;
    running.catch(() => {
      settled = true;
    });
    await turn();
    parts[failing].fail(new Error('broken'));
    await turn();
    assert.deepEqual(failures, [failing]);
    assert.equal(settled, false, 'the other part still runs');
    parts[failing === 'reader' ? 'writer' : 'reader'].end();
    await assert.rejects(running, /broken/);
    assert.ok(log.includes(`${failing === 'reader' ? 'writer' : 'reader'} has ended`));
  }
});

test('a signal that has aborted before is met', async () => {
  const log: string[] = [];
  const reader = new FakePart('reader', log);
  reader.end();
  await runParts([reader], [], AbortSignal.abort(), () => undefined);
  assert.ok(log.includes('reader has ended'));
});

test('a topic that is about to be made is awaited quietly, but not for ever', async () => {
  let now = 0;
  const clock = {
    now: () => now,
    monotonic: () => now,
    sleep: (ms: number): Promise<void> => {
      now += ms;
      return Promise.resolve();
    },
  };
  const told: string[] = [];
  const say = (level: string) => (_: unknown, message?: string) => told.push(`${level} ${message} ${now < 30_000}`);
  const logger = { ...silentLogger, info: say('info'), warn: say('warn') };
  const missing = transportErrors.TRANSPORT_TOPIC_MISSING({ message: 'there is no topic' });
  const runner = {
    run: (): Promise<void> => (now < 60_000 ? Promise.reject(missing) : Promise.resolve()),
    refresh: () => undefined,
    health: () => ({ name: 'x', alive: true, ready: true, detail: '' }),
    status: () => null,
  };
  await part('x', () => runner, { clock, logger }).run(new AbortController().signal);
  assert.equal(told[0], 'info the topic is not there yet: the reader makes it true');
  assert.ok(told.length > 1);
  assert.deepEqual([...new Set(told.slice(1))], ['warn trying again false']);
});

const errors = errorCatalogue({ TEST_AWAY: { remedy: 'none', retriable: true } });

test('a part that ran well is begun anew after a short pause, however often it failed before', async () => {
  let now = 0;
  const slept: number[] = [];
  const clock = {
    now: () => now,
    monotonic: () => now,
    sleep: (ms: number): Promise<void> => {
      slept.push(ms);
      return Promise.resolve();
    },
  };
  const stop = new AbortController();
  let runs = 0;
  const runner = {
    run: (): Promise<void> => {
      runs += 1;
      // the first ten fail at once, the next after an hour of work
      if (runs === 11) now += 3_600_000;
      if (runs === 12) return Promise.resolve();
      return Promise.reject(errors.TEST_AWAY({ message: 'away' }));
    },
    refresh: () => undefined,
    health: () => ({ name: 'x', alive: true, ready: true, detail: '' }),
    status: () => null,
  };
  await part('x', () => runner, { clock, logger: silentLogger }).run(stop.signal);
  assert.equal(slept.length, 11);
  assert.ok((slept[9] ?? 0) > 5_000, 'they grow while nothing works');
  assert.ok((slept[10] ?? 0) <= 50);
});

test('a part that waits to begin anew is alive, not ready, and says why', async () => {
  const stop = new AbortController();
  const reports: unknown[] = [];
  const clock = {
    ...systemClock,
    sleep: (): Promise<void> => {
      reports.push(trying.health());
      stop.abort();
      return Promise.resolve();
    },
  };
  const runner = {
    run: (): Promise<void> => Promise.reject(errors.TEST_AWAY({ message: 'nobody answers' })),
    refresh: () => undefined,
    health: () => ({ name: 'x', alive: false, ready: true, detail: 'failed' }),
    status: () => null,
  };
  const trying = part('x', () => runner, { clock, logger: silentLogger });
  await trying.run(stop.signal);
  const detail = 'trying again: TEST_AWAY: nobody answers';
  assert.equal(reports.length, 1);
  const report = reports[0] as { detail: string };
  assert.ok(report.detail.startsWith(detail), report.detail);
  assert.deepEqual({ ...report, detail }, { name: 'x', alive: true, ready: false, detail });
});
