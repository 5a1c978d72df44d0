import assert from 'node:assert/strict';
import {
  type Bench,
  type ConformanceOptions,
  type GroupEvent,
  Journal,
  type Register,
  randomName,
  record,
  rejectsWith,
  type Seen,
} from './conformance-kit.ts';
import type { AssignedPartition, Transport } from './port.ts';

function seenOf(entries: readonly GroupEvent[], member?: string): Seen[] {
  return entries.flatMap((entry) =>
    entry.kind === 'record' && (member === undefined || entry.member === member) ? [entry.seen] : [],
  );
}

/** The partitions that a member holds at this point of the journal. */
function held(entries: readonly GroupEvent[], member: string): Set<number> {
  const partitions = new Set<number>();
  for (const entry of entries) {
    if (entry.member !== member) continue;
    if (entry.kind === 'assigned') partitions.add(entry.partition);
    if (entry.kind === 'ended') partitions.delete(entry.partition);
  }
  return partitions;
}

/** Fails when a partition had two handlers at a time. */
function assertNeverShared(entries: readonly GroupEvent[]): void {
  const owner = new Map<number, string>();
  for (const entry of entries) {
    if (entry.kind === 'assigned') {
      const other = owner.get(entry.partition);
      assert.equal(other, undefined, `partition ${entry.partition} went to ${entry.member} while ${other} had it`);
      owner.set(entry.partition, entry.member);
    } else if (entry.kind === 'ended') {
      owner.delete(entry.partition);
    }
  }
}

async function filled(bench: Bench, partitions: number, perPartition: number): Promise<[Transport, string]> {
  const transport = await bench.transport();
  const topic = await bench.topic(transport, partitions);
  const publisher = await bench.publisher(transport, topic);
  for (let partition = 0; partition < partitions; partition++) {
    await publisher.publish(
      partition,
      Array.from({ length: perPartition }, (_, index) => record(`${partition}-${index}`)),
    );
  }
  return [transport, topic];
}

export function groupConformance(it: Register, options: ConformanceOptions): void {
  it('a new group begins at the earliest record, commits, and resumes behind the commit', async (bench) => {
    const [transport, topic] = await filled(bench, 1, 10);
    const group = randomName('g');
    assert.deepEqual(await transport.committedOffsets(topic, group), [null]);
    const journal = new Journal<GroupEvent>();
    const first = await bench.join({ name: 'first', topic, group, journal });
    await journal.wait((entries) => seenOf(entries).length === 10, first.done);
    await first.stop();
    assert.deepEqual(await transport.committedOffsets(topic, group), [10]);
    const publisher = await bench.publisher(transport, topic);
    await publisher.publish(0, [record('later')]);
    const second = await bench.join({ name: 'second', topic, group, journal });
    await journal.wait((entries) => seenOf(entries, 'second').length === 1, second.done);
    await second.stop();
    const committed = journal.entries.flatMap((entry) => (entry.kind === 'assigned' ? [entry.committed] : []));
    assert.deepEqual(committed, [null, 10]);
    assert.deepEqual(
      seenOf(journal.entries).map(({ offset }) => offset),
      Array.from({ length: 11 }, (_, index) => index),
    );
  });

  it('what was handled but not committed comes again', async (bench) => {
    const [transport, topic] = await filled(bench, 1, 10);
    const group = randomName('g');
    const journal = new Journal<GroupEvent>();
    const lazy = await bench.join({
      name: 'lazy',
      topic,
      group,
      journal,
      handle: async (partition) => {
        for await (const batch of partition.batches(0)) {
          assert.ok(batch.nextOffset > 0);
          await partition.commit(4);
          journal.push({ kind: 'record', member: 'lazy', seen: { ...nothing } });
        }
      },
    });
    await journal.wait((entries) => seenOf(entries).length > 0, lazy.done);
    await lazy.stop();
    assert.deepEqual(await transport.committedOffsets(topic, group), [4]);
    const again = await bench.join({ name: 'again', topic, group, journal });
    await journal.wait((entries) => seenOf(entries, 'again').length === 6, again.done);
    assert.equal(seenOf(journal.entries, 'again')[0]?.offset, 4);
    await again.stop();
  });

  it('groups do not disturb each other, and a commit is of one partition', async (bench) => {
    const [transport, topic] = await filled(bench, 2, 3);
    const [one, two] = [randomName('g'), randomName('g')];
    const journal = new Journal<GroupEvent>();
    const member = await bench.join({
      name: 'one',
      topic,
      group: one,
      journal,
      handle: async (partition) => {
        if (partition.partition === 1) {
          await partition.commit(2);
          journal.push({ kind: 'record', member: 'one', seen: { ...nothing } });
        }
        await aborted(partition.revoked);
      },
    });
    await journal.wait((entries) => seenOf(entries).length === 1, member.done);
    assert.deepEqual(await transport.committedOffsets(topic, one), [null, 2]);
    assert.deepEqual(await transport.committedOffsets(topic, two), [null, null]);
    await member.stop();
  });

  it('two members share the partitions; each gets its own and all are held', async (bench) => {
    const [, topic] = await filled(bench, 4, 5);
    const group = randomName('g');
    const journal = new Journal<GroupEvent>();
    const a = await bench.join({ name: 'a', topic, group, journal });
    await journal.wait((entries) => held(entries, 'a').size === 4, a.done);
    const b = await bench.join({ name: 'b', topic, group, journal });
    await journal.wait((entries) => held(entries, 'a').size === 2 && held(entries, 'b').size === 2, a.done, b.done);
    await b.stop();
    await journal.wait((entries) => held(entries, 'a').size === 4, a.done);
    await a.stop();
    assertNeverShared(journal.entries);
    const keys = seenOf(journal.entries).map(({ partition, offset }) => `${partition}:${offset}`);
    assert.equal(new Set(keys).size, 20, 'everything was seen');
  });

  it('on a rebalance the batch in flight is finished and committed before the partition goes over', async (bench) => {
    const [, topic] = await filled(bench, 2, 5);
    const group = randomName('g');
    const journal = new Journal<GroupEvent>();
    const slow = await bench.join({
      name: 'slow',
      topic,
      group,
      journal,
      handle: async (partition) => {
        for await (const batch of partition.batches(partition.committed ?? 0)) {
          // The apply takes until the partition is asked back, and a while longer.
          await aborted(partition.revoked);
          await new Promise((resolve) => setTimeout(resolve, 300));
          await partition.commit(batch.nextOffset);
        }
      },
    });
    await journal.wait((entries) => held(entries, 'slow').size === 2, slow.done);
    const young = await bench.join({ name: 'young', topic, group, journal });
    await journal.wait((entries) => held(entries, 'young').size === 1, slow.done, young.done);
    assertNeverShared(journal.entries);
    const got = journal.entries.find((entry) => entry.kind === 'assigned' && entry.member === 'young');
    assert.ok(got?.kind === 'assigned');
    assert.equal(got.committed, 5, 'the successor begins behind the commit made while handing over');
    await young.stop();
    await slow.stop();
  });

  it('a handler that outstays the hand-over loses the partition, and its commit is refused', async (bench) => {
    const [transport, topic] = await filled(bench, 2, 5);
    const group = randomName('g');
    const journal = new Journal<GroupEvent>();
    const kept: AssignedPartition[] = [];
    const release = new AbortController();
    const stuck = await bench.join({
      name: 'stuck',
      topic,
      group,
      journal,
      handoverMs: 500,
      handle: async (partition) => {
        kept.push(partition);
        await aborted(AbortSignal.any([release.signal, bench.signal]));
      },
    });
    await journal.wait((entries) => held(entries, 'stuck').size === 2, stuck.done);
    const young = await bench.join({ name: 'young', topic, group, journal, handoverMs: 500 });
    await journal.wait((entries) => held(entries, 'young').size >= 1 && seenOf(entries, 'young').length === 5);
    const [lost] = [...held(journal.entries, 'young')];
    const partition = kept.find((each) => each.partition === lost);
    assert.ok(partition?.revoked.aborted);
    await rejectsWith('TRANSPORT_NOT_OWNER', partition.commit(1));
    release.abort();
    await young.stop();
    await stuck.stop();
    assert.equal((await transport.committedOffsets(topic, group))[lost!], 5);
  });

  it('a handler that takes its time keeps its partition', async (bench) => {
    const [transport, topic] = await filled(bench, 1, 5);
    const group = randomName('g');
    const journal = new Journal<GroupEvent>();
    const member = await bench.join({
      name: 'busy',
      topic,
      group,
      journal,
      handle: async (partition) => {
        for await (const batch of partition.batches(0)) {
          await new Promise((resolve) => setTimeout(resolve, 2000));
          await partition.commit(batch.nextOffset);
          journal.push({ kind: 'record', member: 'busy', seen: { ...nothing } });
        }
      },
    });
    await journal.wait((entries) => seenOf(entries).length === 1, member.done);
    assert.deepEqual(await transport.committedOffsets(topic, group), [5]);
    await member.stop();
  });

  it('run rejects with what a handler rejects with, after the other handlers ended', async (bench) => {
    const [, topic] = await filled(bench, 3, 1);
    const journal = new Journal<GroupEvent>();
    const failure = new Error('the sink is on fire');
    const fail = new AbortController();
    const member = await bench.join({
      name: 'm',
      topic,
      group: randomName('g'),
      journal,
      handle: async (partition) => {
        if (partition.partition === 1) {
          await aborted(fail.signal);
          throw failure;
        }
        await aborted(partition.revoked);
        await new Promise((resolve) => setTimeout(resolve, 50));
      },
    });
    await journal.wait((entries) => held(entries, 'm').size === 3, member.done);
    fail.abort();
    await assert.rejects(member.done, (error) => error === failure);
    assert.equal(held(journal.entries, 'm').size, 0, 'all handlers ended before run rejected');
  });

  it("batches end at the caller's signal, also while none comes, and others begin", async (bench) => {
    const [, topic] = await filled(bench, 1, 3);
    const journal = new Journal<GroupEvent>();
    const rounds = [0, 0];
    const member = await bench.join({
      name: 'm',
      topic,
      group: randomName('g'),
      journal,
      handle: async (partition) => {
        for (const round of rounds.keys()) {
          const enough = new AbortController();
          for await (const batch of partition.batches(0, enough.signal)) {
            rounds[round] = batch.nextOffset;
            if (batch.nextOffset === 3) setImmediate(() => enough.abort());
          }
        }
        journal.push({ kind: 'record', member: 'm', seen: { ...nothing } });
        await aborted(partition.revoked);
      },
    });
    await journal.wait((entries) => seenOf(entries).length === 1, member.done);
    assert.deepEqual(rounds, [3, 3]);
    await member.stop();
  });

  it('batches from beyond the end are refused', async (bench) => {
    const [, topic] = await filled(bench, 1, 5);
    const journal = new Journal<GroupEvent>();
    const member = await bench.join({
      name: 'm',
      topic,
      group: randomName('g'),
      journal,
      handle: async (partition) => {
        for await (const _ of partition.batches(6)) assert.fail('there is nothing');
      },
    });
    await rejectsWith('TRANSPORT_OFFSET_OUT_OF_RANGE', member.done);
  });

  it(
    'batches and reads from before the earliest offset are refused',
    async (bench) => {
      const [transport, topic] = await filled(bench, 1, 5);
      const publisher = await bench.publisher(transport, topic);
      await publisher.publish(0, [record('later')]);
      await options.truncateBefore?.(topic, 0, 5);
      assert.deepEqual(await transport.offsetRanges(topic), [{ earliest: 5, end: 6 }]);
      const journal = new Journal<GroupEvent>();
      const member = await bench.join({
        name: 'm',
        topic,
        group: randomName('g'),
        journal,
        handle: async (partition) => {
          assert.deepEqual(partition.range, { earliest: 5, end: 6 });
          for await (const _ of partition.batches(4)) assert.fail('it is gone');
        },
      });
      await rejectsWith('TRANSPORT_OFFSET_OUT_OF_RANGE', member.done);
      const batches = transport.read({ topic, partition: 0, from: 4, until: 6 })[Symbol.asyncIterator]();
      await rejectsWith('TRANSPORT_OFFSET_OUT_OF_RANGE', batches.next());
    },
    options.truncateBefore === undefined,
  );

  it('a partition without news sleeps, wakes when some come, and ends when revoked', async (bench) => {
    const transport = await bench.transport();
    const topic = await bench.topic(transport);
    const journal = new Journal<GroupEvent>();
    const member = await bench.join({ name: 'm', topic, group: randomName('g'), journal });
    await journal.wait((entries) => held(entries, 'm').size === 1, member.done);
    const publisher = await bench.publisher(transport, topic);
    for (let round = 1; round <= 30; round++) {
      await publisher.publish(0, [record(String(round))]);
      await journal.wait((entries) => seenOf(entries).length === round, member.done);
    }
    await member.stop();
    assert.equal(held(journal.entries, 'm').size, 0);
  });

  it('closing consumer and transport ends run, more than once and in any order', async (bench) => {
    const [transport, topic] = await filled(bench, 2, 1);
    const journal = new Journal<GroupEvent>();
    const a = await bench.join({ name: 'a', topic, group: randomName('g'), journal, transport });
    await journal.wait((entries) => seenOf(entries).length === 2, a.done);
    await a.consumer.close();
    await a.consumer.close();
    await a.done.catch(() => {});
    const b = await bench.join({ name: 'b', topic, group: randomName('g'), journal, transport });
    await journal.wait((entries) => seenOf(entries, 'b').length === 2, b.done);
    await transport.close();
    await transport.close();
    await b.done.catch(() => {});
    assert.equal(held(journal.entries, 'b').size, 0);
  });
}

const nothing: Seen = { member: '', partition: 0, offset: -1, key: '', value: null };

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
