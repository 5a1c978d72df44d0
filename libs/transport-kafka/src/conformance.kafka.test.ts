import { before } from 'node:test';
import { type TestServer, until } from '@mysync/harness';
import { transportConformance } from '@mysync/transport/conformance';
import { sharedKafka, topicName, transportOn, withAdmin } from './testing.ts';

const TOPIC_RESOURCE = 2;

let server: TestServer;

before(async () => {
  server = await sharedKafka();
});

transportConformance({
  name: 'kafka',
  createTransport: async () => transportOn(server, { replicationFactor: 1, minInsyncReplicas: 1 }),
  topicName,
  tooLargeRecordBytes: 9 * 2 ** 20,
  deleteTopic: async (name) => {
    await withAdmin(server, async (admin) => {
      await admin.deleteTopics({ topics: [name] });
      await until('the topic is gone', async () => !(await admin.listTopics()).includes(name));
    });
  },
  truncateBefore: async (topic, partition, offset) => {
    await withAdmin(server, async (admin) => {
      // Only records of topics that are not compacted may be deleted, and kafkajs must have heard of the topic.
      const configEntries = [{ name: 'cleanup.policy', value: 'delete' }];
      await admin.alterConfigs({
        validateOnly: false,
        resources: [{ type: TOPIC_RESOURCE, name: topic, configEntries }],
      });
      await admin.fetchTopicOffsets(topic);
      await until('the records are deleted', async () => {
        await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: `${offset}` }] });
        return true;
      });
    });
  },
  createCompactingTopic: async (transport, name, deleteRetentionMs) => {
    await withAdmin(server, (admin) =>
      admin.createTopics({
        topics: [
          {
            topic: name,
            numPartitions: 1,
            configEntries: [
              { name: 'cleanup.policy', value: 'compact' },
              { name: 'segment.ms', value: '1000' },
              { name: 'min.cleanable.dirty.ratio', value: '0.01' },
              { name: 'max.compaction.lag.ms', value: '1000' },
              { name: 'file.delete.delay.ms', value: '1000' },
              { name: 'delete.retention.ms', value: `${deleteRetentionMs}` },
            ],
          },
        ],
        waitForLeaders: true,
      }),
    );
    await until('the new topic is known', () => transport.describeTopic(name).then((topic) => topic !== null));
  },
});
