import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { transportConformance } from '@mysync/transport/conformance';
import { LogTransport } from './index.ts';

for (const fsync of ['commit', 'interval'] as const) {
  const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
  after(() => rmSync(path, { recursive: true, force: true }));
  const createTransport = () =>
    LogTransport.open({
      path,
      fsync,
      maxRecordBytes: 20 * 2 ** 20,
      maintenance: { intervalMs: 50, minDirtyBytes: 0, minDirtyRatio: 0.001 },
    });
  const withTransport = async (action: (transport: LogTransport) => Promise<void>): Promise<void> => {
    const transport = await createTransport();
    await action(transport);
    await transport.close();
  };
  let topics = 0;
  transportConformance({
    name: `log, fsync ${fsync}`,
    createTransport,
    topicName: () => `topic-${++topics}`,
    bigRecordBytes: 19 * 2 ** 20,
    tooLargeRecordBytes: 20 * 2 ** 20,
    createCompactingTopic: async (transport, name, deleteRetentionMs) => {
      await transport.ensureTopic({
        name,
        partitions: 1,
        compacted: true,
        deleteRetentionMs,
        minCompactionLagMs: 0,
        retentionMs: -1,
        allowWeaker: true,
      });
    },
    deleteTopic: (name) => withTransport((transport) => transport.deleteTopic(name)),
    truncateBefore: (topic, partition, offset) =>
      withTransport((transport) => transport.deleteBefore(topic, partition, offset)),
  });
}
