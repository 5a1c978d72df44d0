import assert from 'node:assert/strict';
import { isMysyncError } from '@mysync/core';
import {
  type ConformanceOptions,
  type GroupEvent,
  Journal,
  type Register,
  randomName,
  record,
  rejectsWith,
} from './conformance-kit.ts';

const DAY_MS = 86_400_000;

export function topicConformance(it: Register, options: ConformanceOptions): void {
  it('ensureTopic makes the topic once; every client sees the same', async (bench) => {
    const transport = await bench.transport();
    const name = bench.options.topicName();
    assert.equal(await transport.describeTopic(name), null);
    const made = await transport.ensureTopic(bench.spec(name, 3));
    assert.equal(made.name, name);
    assert.equal(made.partitions, 3);
    assert.notEqual(made.id, '');
    const other = await bench.transport();
    assert.deepEqual(await other.describeTopic(name), made);
    assert.deepEqual(await other.ensureTopic(bench.spec(name, 3)), made);
    assert.deepEqual(
      await other.offsetRanges(name),
      Array.from({ length: 3 }, () => ({ earliest: 0, end: 0 })),
    );
  });

  it('two clients that make a topic at the same time agree', async (bench) => {
    const name = bench.options.topicName();
    const transports = await Promise.all([bench.transport(), bench.transport(), bench.transport()]);
    const made = await Promise.all(transports.map((transport) => transport.ensureTopic(bench.spec(name, 2))));
    assert.equal(new Set(made.map(({ id }) => id)).size, 1);
  });

  it('another partition count is refused, whatever is allowed', async (bench) => {
    const transport = await bench.transport();
    const name = await bench.topic(transport, 2);
    await rejectsWith('TRANSPORT_PARTITIONS_DIFFER', transport.ensureTopic(bench.spec(name, 3)));
    await rejectsWith('TRANSPORT_PARTITIONS_DIFFER', transport.ensureTopic(bench.spec(name, 1, { allowWeaker: true })));
  });

  it('weaker settings are refused by name, unless allowed', async (bench) => {
    const transport = await bench.transport();
    const name = bench.options.topicName();
    const made = await transport.ensureTopic(bench.spec(name, 1, { deleteRetentionMs: DAY_MS, allowWeaker: true }));
    const wanted = bench.spec(name, 1, { deleteRetentionMs: 7 * DAY_MS, allowWeaker: false });
    await assert.rejects(transport.ensureTopic(wanted), (error: unknown) => {
      assert.ok(isMysyncError(error, 'TRANSPORT_TOPIC_WEAKER'), String(error));
      assert.match(error.toString(), /delete.?retention/i);
      return true;
    });
    assert.deepEqual(await transport.ensureTopic({ ...wanted, allowWeaker: true }), made);
  });

  it('check reports and does not throw, whether the topic is there or not', async (bench) => {
    const transport = await bench.transport();
    const name = bench.options.topicName();
    for (let round = 0; round < 2; round++) {
      for (const finding of await transport.check(bench.spec(name, 2))) {
        assert.match(finding.level, /^(ok|warning|error)$/);
        assert.notEqual(finding.code, '');
        assert.equal(finding.remedy === '', finding.level === 'ok', `${finding.code}: ${finding.message}`);
      }
      await transport.ensureTopic(bench.spec(name, 2));
    }
    const differs = await transport.check(bench.spec(name, 5, { allowWeaker: true }));
    assert.ok(differs.some(({ level, code }) => level === 'error' && code === 'TRANSPORT_PARTITIONS_DIFFER'));
  });

  it('a missing topic is told', async (bench) => {
    const transport = await bench.transport();
    await rejectsWith('TRANSPORT_TOPIC_MISSING', transport.offsetRanges(bench.options.topicName()));
    await rejectsWith(
      'TRANSPORT_TOPIC_MISSING',
      transport.committedOffsets(bench.options.topicName(), randomName('g')),
    );
  });

  it(
    'a topic that is deleted and made anew has another id and begins at 0',
    async (bench) => {
      const transport = await bench.transport();
      const name = await bench.topic(transport);
      const before = await transport.describeTopic(name);
      const publisher = await bench.publisher(transport, name);
      await publisher.publish(0, [record('gone')]);
      await publisher.close();
      await options.deleteTopic?.(name);
      const again = await bench.transport();
      const after = await again.ensureTopic(bench.spec(name));
      assert.notEqual(after.id, before?.id);
      assert.deepEqual(await again.offsetRanges(name), [{ earliest: 0, end: 0 }]);
    },
    options.deleteTopic === undefined,
  );

  it('a closed transport leaves no handle behind, whatever was open', async (bench) => {
    const outside = await bench.transport();
    const name = await bench.topic(outside, 2);
    const before = resources();
    const transport = await options.createTransport();
    const publisher = await bench.publisher(transport, name);
    await publisher.publish(0, [record('a')]);
    const reading = (async () => {
      for await (const _ of transport.read({ topic: name, partition: 0, from: 0 })) {
        // Follows until the transport closes.
      }
    })().catch(() => {});
    const journal = new Journal<GroupEvent>();
    const member = await bench.join({ name: 'm', topic: name, group: randomName('g'), journal, transport });
    await journal.wait((entries) => entries.some(({ kind }) => kind === 'record'), member.done);
    await transport.close();
    await reading;
    await member.done.catch(() => {});
    // Sockets close a turn or two later; the time limit of the test ends the wait.
    for (;;) {
      const left = [...resources()].filter(([kind, count]) => count > (before.get(kind) ?? 0));
      if (left.length === 0) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await rejectsWith('TRANSPORT_CLOSED', transport.openPublisher({ topic: name, producer: 'p', previous: null }));
  });
}

/** Counts of what keeps the process alive. Requests in flight come and go; handles are what matters. */
function resources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) {
    if (/Timeout|TCPSocketWrap|TLSWrap|FSEventWrap|StatWatcher|Worker|MessagePort|Pipe|Process/.test(kind)) {
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
  }
  return counts;
}
