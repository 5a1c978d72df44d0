import assert from 'node:assert/strict';
import { isMysyncError } from '@mysync/core';
import { type Bench, bytes, type Register, readAll, record, rejectsWith } from './conformance-kit.ts';
import type { Header, OutgoingRecord, Publisher, Transport } from './port.ts';

async function bench1(bench: Bench): Promise<{ transport: Transport; topic: string; publisher: Publisher }> {
  const transport = await bench.transport();
  const topic = await bench.topic(transport);
  return { transport, topic, publisher: await bench.publisher(transport, topic) };
}

/** Runs the calls with as many open at a time as the publisher allows, in order. */
async function publishAll(
  publisher: Publisher,
  batches: readonly (readonly OutgoingRecord[])[],
  partition = 0,
): Promise<number[]> {
  const answers: number[] = [];
  const open: Promise<{ readonly baseOffset: number }>[] = [];
  for (const batch of batches) {
    if (open.length === publisher.maxOpenBatches) answers.push((await open.shift()!).baseOffset);
    open.push(publisher.publish(partition, batch));
  }
  for (const each of open) answers.push((await each).baseOffset);
  return answers;
}

export function publishConformance(it: Register, tooLargeRecordBytes: number | undefined): void {
  it('publish answers the first offset of a contiguous batch, from 0 on', async (bench) => {
    const { transport, topic, publisher } = await bench1(bench);
    assert.deepEqual(await publisher.publish(0, [record('a'), record('b'), record('c')]), { baseOffset: 0 });
    assert.deepEqual(await publisher.publish(0, [record('d')]), { baseOffset: 3 });
    const seen = await readAll(transport, topic);
    assert.deepEqual(
      seen.map(({ offset, key }) => [offset, key]),
      [
        [0, 'a'],
        [1, 'b'],
        [2, 'c'],
        [3, 'd'],
      ],
    );
    assert.deepEqual(await transport.offsetRanges(topic), [{ earliest: 0, end: 4 }]);
  });

  it('concurrent publishes are stored in call order, per partition', async (bench) => {
    const transport = await bench.transport();
    const topic = await bench.topic(transport, 3);
    const publisher = await bench.publisher(transport, topic);
    const batches = Array.from({ length: 60 }, (_, b) =>
      Array.from({ length: 1 + (b % 7) }, (_unused, r) => record(`${b}-${r}`, 'x'.repeat((b * 131) % 3000))),
    );
    const answers = await Promise.all([0, 1, 2].map((partition) => publishAll(publisher, batches, partition)));
    let base = 0;
    const bases = batches.map((batch) => {
      base += batch.length;
      return base - batch.length;
    });
    for (const partition of [0, 1, 2]) {
      assert.deepEqual(answers[partition], bases);
      const seen = await readAll(transport, topic, partition);
      assert.deepEqual(
        seen.map(({ key }) => key),
        batches.flatMap((batch) => batch.map(({ key }) => Buffer.from(key).toString())),
      );
      assert.deepEqual(
        seen.map(({ offset }) => offset),
        seen.map((_, index) => index),
      );
    }
  });

  it('keeps bytes, headers, tombstones, and tells an empty value from none', async (bench) => {
    const { transport, topic, publisher } = await bench1(bench);
    const all = Uint8Array.from({ length: 256 }, (_, index) => index);
    const headers: Header[] = [
      { name: 'first', value: all },
      { name: 'empty', value: new Uint8Array(0) },
      { name: 'first', value: bytes('twice') },
      { name: 'ключ', value: bytes('é') },
    ];
    const sent: OutgoingRecord[] = [
      { key: all, value: all, headers },
      { key: bytes('tombstone'), value: null, headers },
      { key: bytes('empty'), value: new Uint8Array(0), headers: [] },
      { key: Uint8Array.of(0), value: Uint8Array.of(0), headers: [] },
      { key: all.subarray(10, 20), value: Buffer.from('a view into a pool'), headers: [] },
    ];
    await publisher.publish(0, sent);
    let count = 0;
    for await (const batch of transport.read({ topic, partition: 0, from: 0, until: sent.length })) {
      for (const got of batch.records) {
        const want = sent[got.offset]!;
        assert.deepEqual(Buffer.from(got.key), Buffer.from(want.key));
        assert.equal(got.value === null, want.value === null);
        if (got.value !== null && want.value !== null) {
          assert.deepEqual(Buffer.from(got.value), Buffer.from(want.value));
        }
        assert.deepEqual(
          got.headers.map(({ name, value }) => [name, Buffer.from(value).toString('hex')]),
          want.headers.map(({ name, value }) => [name, Buffer.from(value).toString('hex')]),
        );
        count++;
      }
    }
    assert.equal(count, sent.length);
  });

  it('stores a batch of maxBatchBytes, and a single big record', async (bench) => {
    const { transport, topic, publisher } = await bench1(bench);
    assert.ok(publisher.maxBatchBytes > 0 && publisher.maxOpenBatches >= 1);
    const each = 1000;
    const batch = Array.from({ length: Math.floor(publisher.maxBatchBytes / each) }, (_, index) =>
      record(String(index).padStart(8, '0'), 'v'.repeat(each - 8)),
    );
    assert.deepEqual(await publisher.publish(0, batch), { baseOffset: 0 });
    const value = 'b'.repeat(bench.options.bigRecordBytes ?? 900_000);
    assert.deepEqual(await publisher.publish(0, [record('big', value)]), { baseOffset: batch.length });
    const seen = await readAll(transport, topic);
    assert.equal(seen.length, batch.length + 1);
    assert.ok(seen.at(-1)?.value === value, 'the big value came back');
  });

  it(
    'refuses a record that is too large, stores nothing of its batch, and goes on after renumber',
    async (bench) => {
      const { transport, topic, publisher } = await bench1(bench);
      await publisher.publish(0, [record('before')]);
      const huge = record('huge', 'h'.repeat(tooLargeRecordBytes ?? 0));
      assert.equal(publisher.takes(huge), false);
      assert.ok(publisher.takes(record('large', 'l'.repeat(publisher.surelyTakenBytes - 5))));
      assert.ok(publisher.surelyTakenBytes < (tooLargeRecordBytes ?? 0));
      await rejectsWith('TRANSPORT_RECORD_TOO_LARGE', publisher.publish(0, [record('beside'), huge]));
      await publisher.renumber();
      assert.deepEqual(await publisher.publish(0, [record('after')]), { baseOffset: 1 });
      assert.deepEqual(
        (await readAll(transport, topic)).map(({ key }) => key),
        ['before', 'after'],
      );
    },
    tooLargeRecordBytes === undefined,
  );

  it('a successor that has stored a record shuts its predecessor out', async (bench) => {
    const { transport, topic, publisher: old } = await bench1(bench);
    await old.publish(0, [record('old-1')]);
    const other = await bench.transport();
    const young = await bench.publisher(other, topic);
    assert.equal(young.identity.id, old.identity.id);
    assert.ok(young.identity.epoch > old.identity.epoch, 'the producer epoch rises');
    await young.publish(0, [record('young-1')]);
    await rejectsWith('TRANSPORT_FENCED', old.publish(0, [record('old-2')]));
    await rejectsWith('TRANSPORT_FENCED', old.publish(0, [record('old-3')]));
    await young.publish(0, [record('young-2')]);
    assert.deepEqual(
      (await readAll(transport, topic)).map(({ key }) => key),
      ['old-1', 'young-1', 'young-2'],
    );
  });

  it('a predecessor that never published before is shut out too', async (bench) => {
    const { transport, topic, publisher: old } = await bench1(bench);
    const young = await bench.publisher(await bench.transport(), topic);
    await young.publish(0, [record('young')]);
    await rejectsWith('TRANSPORT_FENCED', old.publish(0, [record('old')]));
    assert.deepEqual(
      (await readAll(transport, topic)).map(({ key }) => key),
      ['young'],
    );
  });

  it('a predecessor cannot come back by renumbering', async (bench) => {
    const { transport, topic, publisher: old } = await bench1(bench);
    await old.publish(0, [record('old')]);
    const young = await bench.publisher(await bench.transport(), topic);
    await young.publish(0, [record('young-1')]);
    await rejectsWith('TRANSPORT_FENCED', old.renumber());
    await young.publish(0, [record('young-2')]);
    await rejectsWith('TRANSPORT_FENCED', old.publish(0, [record('old-2')]));
    assert.deepEqual(
      (await readAll(transport, topic)).map(({ key }) => key),
      ['old', 'young-1', 'young-2'],
    );
  });

  it('batches in flight while a successor opens land before its first record or not at all', async (bench) => {
    const { transport, topic, publisher: old } = await bench1(bench);
    const other = await bench.transport();
    const stored: number[] = [];
    let fenced = 0;
    const stop = new AbortController();
    const flood = (async () => {
      for (let n = 0; !stop.signal.aborted; ) {
        const open = Array.from({ length: old.maxOpenBatches }, () => old.publish(0, [record(`old-${n++}`)]));
        for (const result of await Promise.allSettled(open)) {
          if (result.status === 'fulfilled') {
            stored.push(result.value.baseOffset);
          } else {
            assert.ok(isMysyncError(result.reason, 'TRANSPORT_FENCED'), String(result.reason));
            fenced++;
          }
        }
        if (fenced > 0) return;
      }
    })();
    const young = await bench.publisher(other, topic);
    const { baseOffset } = await young.publish(0, [record('young')]);
    await flood;
    stop.abort();
    assert.ok(fenced > 0);
    for (const offset of stored) assert.ok(offset < baseOffset, `offset ${offset} was stored behind the successor's`);
    const seen = await readAll(transport, topic);
    assert.equal(seen.length, baseOffset + 1);
    assert.equal(seen.at(-1)?.key, 'young');
    for (const offset of stored) assert.ok(seen[offset]?.key.startsWith('old-'));
  });

  it('producers of different names do not fence each other', async (bench) => {
    const { transport, topic, publisher } = await bench1(bench);
    const foreign = await bench.publisher(await bench.transport(), topic, 'somebody-else');
    await publisher.publish(0, [record('a')]);
    await foreign.publish(0, [record('b')]);
    await publisher.publish(0, [record('c')]);
    assert.deepEqual(
      (await readAll(transport, topic)).map(({ key }) => key),
      ['a', 'b', 'c'],
    );
  });

  it('after renumber nothing given before lands behind', async (bench) => {
    const { transport, topic, publisher } = await bench1(bench);
    for (let round = 0; round < 10; round++) {
      const before = publisher.identity;
      const open = Array.from({ length: publisher.maxOpenBatches }, (_, index) =>
        publisher.publish(0, [record(`${round}-${index}`)]),
      );
      const settled = Promise.allSettled(open);
      const identity = await publisher.renumber();
      assert.ok(identity.epoch > before.epoch || identity.id !== before.id, 'the identity is a new one');
      assert.deepEqual(publisher.identity, identity);
      const { baseOffset } = await publisher.publish(0, [record(`${round}-end`)]);
      for (const result of await settled) {
        if (result.status === 'fulfilled') assert.ok(result.value.baseOffset < baseOffset);
        else assert.ok(isMysyncError(result.reason, 'TRANSPORT_RENUMBER'), String(result.reason));
      }
    }
    const keys = (await readAll(transport, topic)).map(({ key }) => key);
    assert.equal(new Set(keys).size, keys.length, 'nothing is there twice');
    const order = keys.map((key) => key.split('-')).map(([r, i]) => Number(r) * 1000 + (i === 'end' ? 999 : Number(i)));
    assert.deepEqual(
      order,
      [...order].sort((a, b) => a - b),
    );
  });

  it('a second life of the same producer continues behind the first', async (bench) => {
    const { transport, topic, publisher } = await bench1(bench);
    await publisher.publish(0, [record('one')]);
    await publisher.close();
    const again = await (await bench.transport()).openPublisher({
      topic,
      producer: `p-${topic}`,
      previous: publisher.identity,
    });
    assert.deepEqual(await again.publish(0, [record('two')]), { baseOffset: 1 });
    assert.equal((await readAll(transport, topic)).length, 2);
  });

  it('closing a publisher waits for what is open, is idempotent, and later calls are refused', async (bench) => {
    const { transport, topic, publisher } = await bench1(bench);
    const open = publisher.publish(0, [record('last')]);
    await publisher.close();
    await publisher.close();
    assert.deepEqual(await open, { baseOffset: 0 });
    await rejectsWith('TRANSPORT_CLOSED', publisher.publish(0, [record('too late')]));
    assert.equal((await readAll(transport, topic)).length, 1);
  });

  it('opening a publisher for a missing topic, or with an aborted signal, is refused', async (bench) => {
    const transport = await bench.transport();
    const missing = { topic: bench.options.topicName(), producer: 'p', previous: null };
    await rejectsWith('TRANSPORT_TOPIC_MISSING', transport.openPublisher(missing));
    const topic = await bench.topic(transport);
    const signal = AbortSignal.abort(new Error('not wanted any more'));
    await assert.rejects(transport.openPublisher({ topic, producer: 'p', previous: null, signal }));
  });
}
