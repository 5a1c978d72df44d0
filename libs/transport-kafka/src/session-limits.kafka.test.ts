/** The session timeout against brokers with limits of their own: what the check says before, and a writer's group when it joins. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { startServer } from '@mysync/harness';
import { spec, topicName, transportOn } from './testing.ts';

test('limits of the brokers that the session timeout does not keep are told before a group is refused', async () => {
  const server = await startServer('kafka', {
    args: ['group.min.session.timeout.ms=8000', 'group.max.session.timeout.ms=20000'],
  });
  try {
    for (const [sessionTimeoutMs, told] of [
      [6_000, /sessionTimeoutMs is 6000, below group\.min\.session\.timeout\.ms \(8000\) of broker \d+/],
      [8_000, null],
      [20_001, /sessionTimeoutMs is 20001, above group\.max\.session\.timeout\.ms \(20000\) of broker \d+/],
    ] as const) {
      const transport = transportOn(server, { sessionTimeoutMs });
      const topic = topicName();
      const findings = await transport.check(spec(topic));
      const found = findings.filter(({ code }) => code === 'KAFKA_SESSION_TIMEOUT');
      assert.deepEqual(
        found.map(({ level }) => level),
        [told === null ? 'ok' : 'error'],
      );
      if (told !== null) {
        assert.match(found[0]?.message ?? '', told);
        assert.match(found[0]?.remedy ?? '', /sessionTimeoutMs/);
        await transport.ensureTopic(spec(topic));
        const consumer = await transport.openConsumer({ topic, group: topic, maxBatchBytes: 1000, handoverMs: 1000 });
        const running = consumer.run(() => Promise.resolve(), AbortSignal.timeout(60_000));
        await assert.rejects(running, (error) => isMysyncError(error, 'KAFKA_SESSION_TIMEOUT'));
      }
      await transport.close();
    }
  } finally {
    await server.wipe();
  }
});
