import assert from 'node:assert/strict';
import type { ConformanceOptions } from './conformance-kit.ts';
import { checkBatch, copied, type Register, readAll, record, rejectsWith, type Seen } from './conformance-kit.ts';

/** Reading without a group. */
export function readConformance(it: Register, options: ConformanceOptions): void {
  it('reads any range: from inclusive, until exclusive, also from the middle of a batch', async (bench) => {
    const transport = await bench.transport();
    const topic = await bench.topic(transport);
    const publisher = await bench.publisher(transport, topic);
    for (let batch = 0; batch < 4; batch++) {
      await publisher.publish(
        0,
        Array.from({ length: 5 }, (_, index) => record(String(batch * 5 + index))),
      );
    }
    for (const [from, until] of [
      [0, 20],
      [0, 1],
      [3, 4],
      [7, 17],
      [19, 20],
      [20, 20],
      [8, 8],
    ] as const) {
      const offsets: number[] = [];
      let next = from as number;
      for await (const batch of transport.read({ topic, partition: 0, from, until })) {
        checkBatch(batch, 0);
        for (const each of batch.records) {
          offsets.push(each.offset);
          assert.equal(Buffer.from(each.key).toString(), String(each.offset));
        }
        next = batch.nextOffset;
      }
      assert.deepEqual(
        offsets,
        Array.from({ length: until - from }, (_, index) => from + index),
      );
      assert.ok(next <= until, 'reading does not go past until');
    }
  });

  it('maxBytes bounds a batch, and a single larger record still comes', async (bench) => {
    const transport = await bench.transport();
    const topic = await bench.topic(transport);
    const publisher = await bench.publisher(transport, topic);
    for (let index = 0; index < 10; index++) await publisher.publish(0, [record(String(index), 'v'.repeat(20_000))]);
    const sizes: number[] = [];
    for await (const batch of transport.read({ topic, partition: 0, from: 0, until: 10, maxBytes: 1000 })) {
      sizes.push(batch.records.length);
    }
    assert.equal(
      sizes.reduce((sum, size) => sum + size, 0),
      10,
    );
    assert.ok(Math.max(...sizes) < 10, 'not everything in one batch');
  });

  it('a following read sleeps at the end and wakes when something is appended, also by another client', async (bench) => {
    const transport = await bench.transport();
    const topic = await bench.topic(transport);
    const publisher = await bench.publisher(await bench.transport(), topic);
    const stop = new AbortController();
    const batches = transport.read({ topic, partition: 0, from: 0, signal: stop.signal })[Symbol.asyncIterator]();
    // Far more rounds than a safety poll of seconds could serve within the time of the test.
    for (let round = 0; round < 100; round++) {
      const got = (async (): Promise<Seen> => {
        for (;;) {
          const { value, done } = await batches.next();
          assert.ok(done !== true);
          const first = value.records[0];
          if (first !== undefined) return copied(first, 0);
        }
      })();
      if (round % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
      await publisher.publish(0, [record(`round-${round}`)]);
      assert.equal((await got).key, `round-${round}`);
    }
    const last = batches.next();
    stop.abort();
    assert.equal((await last).done, true, 'an abort ends a sleeping read');
  });

  it('leaving a read early releases it', async (bench) => {
    const transport = await bench.transport();
    const topic = await bench.topic(transport);
    const publisher = await bench.publisher(transport, topic);
    await publisher.publish(0, [record('a'), record('b')]);
    for await (const batch of transport.read({ topic, partition: 0, from: 0 })) {
      assert.equal(batch.nextOffset > 0, true);
      break;
    }
    const aborted = AbortSignal.abort();
    for await (const _ of transport.read({ topic, partition: 0, from: 0, signal: aborted })) {
      assert.fail('an aborted read gives nothing');
    }
  });

  it('reading beyond the end is refused', async (bench) => {
    const transport = await bench.transport();
    const topic = await bench.topic(transport);
    const publisher = await bench.publisher(transport, topic);
    await publisher.publish(0, [record('a')]);
    const batches = transport.read({ topic, partition: 0, from: 2, signal: bench.signal })[Symbol.asyncIterator]();
    await rejectsWith('TRANSPORT_OFFSET_OUT_OF_RANGE', batches.next());
  });

  it('closing the transport ends a sleeping read', async (bench) => {
    const transport = await bench.transport();
    const topic = await bench.topic(transport);
    const batches = transport.read({ topic, partition: 0, from: 0 })[Symbol.asyncIterator]();
    const last = batches.next().then(
      ({ done }) => done === true,
      () => true,
    );
    await transport.close();
    assert.ok(await last);
  });

  it(
    'compaction keeps the last record of each key at its offset',
    async (bench) => {
      const transport = await bench.transport();
      const topic = bench.options.topicName();
      await options.createCompactingTopic?.(transport, topic, 86_400_000);
      const publisher = await bench.publisher(transport, topic);
      const last = new Map<string, Seen>();
      for (let round = 0; round < 20; round++) {
        const batch = Array.from({ length: 50 }, (_, key) =>
          record(`k${key}`, round === 19 && key < 5 ? null : `v${round}-${key}-${'x'.repeat(200)}`),
        );
        const { baseOffset } = await publisher.publish(0, batch);
        batch.forEach((each, index) => {
          const key = Buffer.from(each.key).toString();
          const value = each.value === null ? null : Buffer.from(each.value).toString();
          last.set(key, { member: '', partition: 0, offset: baseOffset + index, key, value });
        });
      }
      for (;;) {
        await publisher.publish(0, [record('tick')]);
        const seen = (await readAll(transport, topic)).filter(({ key }) => key !== 'tick');
        for (const each of last.values()) {
          const found = seen.find(({ offset }) => offset === each.offset);
          assert.deepEqual(found, each, `the last record of ${each.key} is there at its offset`);
        }
        if (seen.length === last.size) break;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      // An offset that was compacted away is still a place to read from.
      const from = 19 * 50 - 3;
      assert.equal((await readAll(transport, topic, 0, from))[0]?.offset, 19 * 50);
      assert.equal((await transport.offsetRanges(topic))[0]?.earliest, 0);
    },
    options.createCompactingTopic === undefined,
  );

  it(
    'compaction forgets tombstones after the delete retention, and nothing else',
    async (bench) => {
      const transport = await bench.transport();
      const topic = bench.options.topicName();
      await options.createCompactingTopic?.(transport, topic, 100);
      const publisher = await bench.publisher(transport, topic);
      await publisher.publish(0, [record('dead', 'once'), record('alive', 'ever')]);
      await publisher.publish(0, [record('dead', null)]);
      for (;;) {
        await publisher.publish(0, [record('tick')]);
        const seen = await readAll(transport, topic);
        assert.ok(seen.some(({ key, value }) => key === 'alive' && value === 'ever'));
        if (!seen.some(({ key }) => key === 'dead')) break;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    },
    options.createCompactingTopic === undefined,
  );
}
