/**
 * What the tests run in processes of their own, to be killed or frozen. Started with `fork`; the first argument is a
 * `ChildTask` as JSON; talks by IPC messages.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { LogTransport } from './index.ts';

export type ChildTask =
  | {
      readonly kind: 'publish';
      readonly path: string;
      readonly topic: string;
      readonly producer: string;
      readonly from: number;
      readonly fsync: 'commit' | 'interval';
    }
  | { readonly kind: 'compact'; readonly path: string; readonly fsync: 'commit' | 'interval' }
  | { readonly kind: 'reopen'; readonly path: string }
  | {
      readonly kind: 'leave';
      readonly path: string;
      readonly topic: string;
      readonly held: string;
      readonly leaving: string;
    }
  | { readonly kind: 'follow'; readonly path: string; readonly topic: string }
  | {
      readonly kind: 'member';
      readonly path: string;
      readonly topic: string;
      readonly group: string;
      readonly leaseMs: number;
    };

export type ChildMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'stored'; readonly first: number; readonly count: number; readonly baseOffset: number }
  | { readonly kind: 'read'; readonly offset: number; readonly key: string }
  | { readonly kind: 'assigned' | 'revoked'; readonly partition: number }
  | { readonly kind: 'committed'; readonly partition: number; readonly code: string }
  | { readonly kind: 'failed'; readonly code: string; readonly text: string };

function tell(message: ChildMessage): void {
  process.send?.(message);
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown }).code ?? error);
}

/** Keys cycle through 50, values count up from `from`: what is stored must be contiguous. */
async function publish(task: ChildTask & { kind: 'publish' }): Promise<void> {
  const { path, topic, producer, from, fsync } = task;
  const transport = await LogTransport.open({ path, fsync, maintenance: false });
  const publisher = await transport.openPublisher({ topic, producer, previous: null });
  tell({ kind: 'ready' });
  let next = from;
  const lane = async (): Promise<void> => {
    for (;;) {
      const first = next;
      const count = 1 + ((first * 7) % 40);
      next += count;
      const batch = Array.from({ length: count }, (_, index) => ({
        key: Buffer.from(`k${(first + index) % 50}`),
        value: Buffer.from(String(first + index).padEnd(1 + (first % 300), ' ')),
        headers: [],
      }));
      const { baseOffset } = await publisher.publish(0, batch);
      tell({ kind: 'stored', first, count, baseOffset });
    }
  };
  await Promise.all(Array.from({ length: publisher.maxOpenBatches }, lane));
}

async function follow(task: ChildTask & { kind: 'follow' }): Promise<void> {
  const transport = await LogTransport.open({ path: task.path, maintenance: false });
  tell({ kind: 'ready' });
  for await (const batch of transport.read({ topic: task.topic, partition: 0, from: 0 })) {
    for (const { offset, key } of batch.records) tell({ kind: 'read', offset, key: Buffer.from(key).toString() });
  }
}

async function member(task: ChildTask & { kind: 'member' }): Promise<void> {
  const { path, topic, group, leaseMs } = task;
  const transport = await LogTransport.open({ path, maintenance: false, memberLeaseMs: leaseMs });
  const consumer = await transport.openConsumer({ topic, group, maxBatchBytes: 1 << 20, handoverMs: 1000 });
  const commits = new Map<number, () => Promise<void>>();
  process.on('message', (partition: number) => {
    const commit = commits.get(partition);
    commit?.().then(
      () => tell({ kind: 'committed', partition, code: '' }),
      (error) => tell({ kind: 'committed', partition, code: codeOf(error) }),
    );
  });
  const run = consumer.run(async (assigned) => {
    const { partition, revoked } = assigned;
    commits.set(partition, () => assigned.commit(1));
    tell({ kind: 'assigned', partition });
    await new Promise<void>((resolve) => {
      if (revoked.aborted) resolve();
      revoked.addEventListener('abort', () => resolve(), { once: true });
    });
    tell({ kind: 'revoked', partition });
  }, new AbortController().signal);
  tell({ kind: 'ready' });
  await run;
}

async function compact(task: ChildTask & { kind: 'compact' }): Promise<void> {
  const { path, fsync } = task;
  await LogTransport.open({
    path,
    fsync,
    maintenance: { intervalMs: 1, minDirtyBytes: 0, minDirtyRatio: 0.001 },
    onProblem: (error) => tell({ kind: 'failed', code: codeOf(error), text: String(error) }),
  });
  tell({ kind: 'ready' });
  await new Promise(() => setInterval(() => {}, 1000));
}

/** Opens and closes many times; every other time it leaves by closing only when the process exits. */
async function reopen(task: ChildTask & { kind: 'reopen' }): Promise<void> {
  for (let round = 0; round < 25; round++) {
    const transport = await LogTransport.open({ path: task.path, fsync: 'interval', maintenance: false });
    if (round < 24) await transport.close();
  }
  tell({ kind: 'ready' });
  process.disconnect?.();
}

/** Ends while a write of its own waits for the lock, which somebody else holds from when `held` is there. */
async function leave({ path, topic, held, leaving }: ChildTask & { kind: 'leave' }): Promise<void> {
  const transport = await LogTransport.open({ path, fsync: 'commit', maintenance: false });
  const publisher = await transport.openPublisher({ topic, producer: 'leaver', previous: null });
  tell({ kind: 'ready' });
  while (!existsSync(held)) await new Promise((resolve) => setImmediate(resolve));
  const records = [{ key: Buffer.from('k'), value: Buffer.from('v'), headers: [] }];
  publisher.publish(0, records).catch(() => {});
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  writeFileSync(leaving, '');
  process.exit(0);
}

const task = JSON.parse(process.argv[2] ?? '{}') as ChildTask;
const work = {
  publish: () => publish(task as ChildTask & { kind: 'publish' }),
  follow: () => follow(task as ChildTask & { kind: 'follow' }),
  member: () => member(task as ChildTask & { kind: 'member' }),
  reopen: () => reopen(task as ChildTask & { kind: 'reopen' }),
  compact: () => compact(task as ChildTask & { kind: 'compact' }),
  leave: () => leave(task as ChildTask & { kind: 'leave' }),
}[task.kind];
// A child whose parent is gone must not stay.
process.on('disconnect', () => process.exit(0));
work().catch((error: unknown) => {
  tell({ kind: 'failed', code: codeOf(error), text: String(error) });
});
