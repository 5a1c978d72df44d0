/**
 * CPU time of publishing and consuming: node dist/throughput.bench.js BROKERS [messages].
 * 300-byte values, 20-byte keys, one header; batches of 500.
 */
import { createKafkaTransport } from './kafka-transport.ts';
import { spec, topicName } from './testing.ts';

const [, , brokers = '127.0.0.1:9092', count = '400000', compression = 'none'] = process.argv;
const messages = Number(count);
const BATCH = 500;

const transport = createKafkaTransport({
  brokers: brokers.split(','),
  compression: compression === 'gzip' ? 'gzip' : 'none',
});

function cpuMicros(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return user + system;
}

function report(what: string, records: number, since: NodeJS.CpuUsage, startedAt: number): void {
  const micros = cpuMicros(since);
  const seconds = (performance.now() - startedAt) / 1000;
  const rss = Math.round(process.memoryUsage.rss() / 2 ** 20);
  process.stdout.write(
    `${what}: ${(micros / records).toFixed(2)} CPU us/record, ${Math.round(records / seconds)} records/s, RSS ${rss} MB\n`,
  );
}

for (const partitions of [1, 4]) {
  const topic = topicName();
  await transport.ensureTopic(spec(topic, partitions));
  const publisher = await transport.openPublisher({ topic, producer: topic, previous: null });
  const filler = JSON.stringify({ name: 'somebody', city: 'somewhere', note: 'a line of text that is like others ' });
  const batch = Array.from({ length: BATCH }, (_, index) => ({
    key: Buffer.from(String(index).padStart(20, '0')),
    value: Buffer.from(`${index}`.padEnd(10) + filler.repeat(4).slice(0, 290)),
    headers: [{ name: 'mysync', value: Buffer.alloc(40, index) }],
  }));
  const publishAll = async (partition: number, batches: number): Promise<void> => {
    const open: Promise<unknown>[] = [];
    for (let sent = 0; sent < batches; sent++) {
      if (open.length === publisher.maxOpenBatches) await open.shift();
      open.push(publisher.publish(partition, batch));
    }
    await Promise.all(open);
  };
  const all = Array.from({ length: partitions }, (_, partition) => partition);
  await Promise.all(all.map((partition) => publishAll(partition, 20)));
  const batches = Math.floor(messages / BATCH / partitions);
  let since = process.cpuUsage();
  let startedAt = performance.now();
  await Promise.all(all.map((partition) => publishAll(partition, batches)));
  report(`publish, ${partitions} partition(s)`, batches * BATCH * partitions, since, startedAt);
  await publisher.close();

  const consumer = await transport.openConsumer({ topic, group: topic, maxBatchBytes: 2 ** 20, handoverMs: 5000 });
  const stop = new AbortController();
  let records = 0;
  let bytes = 0;
  let left = partitions;
  since = process.cpuUsage();
  startedAt = performance.now();
  await consumer.run(async (partition) => {
    for await (const { records: got, nextOffset } of partition.batches(0)) {
      for (const { key, value, headers } of got) bytes += key.length + (value?.length ?? 0) + headers.length;
      records += got.length;
      await partition.commit(nextOffset);
      if (nextOffset === partition.range.end && --left === 0) {
        report(`consume with commits, ${partitions} partition(s)`, records, since, startedAt);
        stop.abort();
      }
    }
  }, stop.signal);
  await consumer.close();
  if (bytes < records * 300) throw new Error('bytes are missing');
}
await transport.close();
