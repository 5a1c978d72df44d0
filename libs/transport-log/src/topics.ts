/** Topics of the log: what is stored of them, and how a wish compares with it. */
import type { MysyncError } from '@mysync/core';
import { type TopicDescription, type TopicSpec, transportErrors } from '@mysync/transport';
import { logErrors } from './errors.ts';
import { emptyPartition, metaKey, type TopicEntry } from './layout.ts';
import { randomId } from './process-identity.ts';
import type { Store } from './store.ts';

const NAME = /^[A-Za-z0-9._-]{1,200}$/;
const LEAST_DELETE_RETENTION_MS = 7 * 86_400_000;

/** Names become parts of keys. */
export function checkName(kind: string, name: string): void {
  if (!NAME.test(name)) {
    throw logErrors.LOG_NAME_INVALID({
      message: `'${name}' is no name for a ${kind} of the log`,
      where: { [kind]: name },
    });
  }
}

export function describe(name: string, entry: TopicEntry): TopicDescription {
  return { name, id: entry.id, partitions: entry.partitions };
}

export function findTopic(store: Store, name: string): TopicEntry | undefined {
  return store.read<TopicEntry>(metaKey.topic(name));
}

export function requireTopic(store: Store, name: string): TopicEntry {
  const entry = findTopic(store, name);
  if (entry === undefined) throw topicMissing(name);
  return entry;
}

export function topicMissing(name: string): MysyncError {
  return transportErrors.TRANSPORT_TOPIC_MISSING({ message: `the log has no topic '${name}'`, where: { topic: name } });
}

export function requirePartition(entry: TopicEntry, topic: string, partition: number): void {
  if (!Number.isInteger(partition) || partition < 0 || partition >= entry.partitions) {
    throw transportErrors.TRANSPORT_PARTITIONS_DIFFER({
      message: `topic '${topic}' has ${entry.partitions} partitions, ${partition} is none of them`,
      where: { topic, partition },
    });
  }
}

function longer(ms: number): number {
  return ms < 0 ? Number.POSITIVE_INFINITY : ms;
}

/** Each setting of the topic that promises less than the spec asks for. */
function findWeaker(entry: TopicEntry, spec: TopicSpec): string[] {
  const weaker: string[] = [];
  const say = (name: string, has: unknown, asked: unknown): void => {
    weaker.push(`${name} is ${has}, asked for is ${asked}`);
  };
  if (entry.compacted !== spec.compacted) say('compacted', entry.compacted, spec.compacted);
  if (spec.compacted) {
    if (entry.deleteRetentionMs < spec.deleteRetentionMs) {
      say('deleteRetentionMs', entry.deleteRetentionMs, spec.deleteRetentionMs);
    }
    if (entry.minCompactionLagMs < spec.minCompactionLagMs) {
      say('minCompactionLagMs', entry.minCompactionLagMs, spec.minCompactionLagMs);
    }
    if (entry.deleteRetentionMs < LEAST_DELETE_RETENTION_MS) {
      say('deleteRetentionMs', entry.deleteRetentionMs, `at least ${LEAST_DELETE_RETENTION_MS}`);
    }
  } else if (longer(entry.retentionMs) < longer(spec.retentionMs)) {
    say('retentionMs', entry.retentionMs, spec.retentionMs);
  }
  return weaker;
}

/** Everything that speaks against using this topic for this spec; the first one is what a start would throw. */
export function topicProblems(entry: TopicEntry, spec: TopicSpec): MysyncError[] {
  const problems: MysyncError[] = [];
  if (entry.partitions !== spec.partitions) {
    problems.push(
      transportErrors.TRANSPORT_PARTITIONS_DIFFER({
        message: `topic '${spec.name}' has ${entry.partitions} partitions, asked for are ${spec.partitions}`,
        where: { topic: spec.name },
      }),
    );
  }
  const weaker = spec.allowWeaker ? [] : findWeaker(entry, spec);
  if (weaker.length > 0) {
    problems.push(
      transportErrors.TRANSPORT_TOPIC_WEAKER({
        message: `topic '${spec.name}': ${weaker.join('; ')}`,
        where: { topic: spec.name },
      }),
    );
  }
  return problems;
}

function entryOf(spec: TopicSpec, id: string): TopicEntry {
  const { partitions, compacted, deleteRetentionMs, minCompactionLagMs, retentionMs } = spec;
  return { id, partitions, compacted, deleteRetentionMs, minCompactionLagMs, retentionMs };
}

export async function ensureTopic(store: Store, spec: TopicSpec): Promise<TopicDescription> {
  checkName('topic', spec.name);
  let entry = findTopic(store, spec.name);
  if (entry === undefined) {
    const made = entryOf(spec, randomId());
    const [problem] = topicProblems(made, spec);
    if (problem !== undefined) throw problem;
    entry = await store.write(() => {
      const found = findTopic(store, spec.name);
      if (found !== undefined) return found;
      store.put(metaKey.topic(spec.name), made);
      for (let partition = 0; partition < made.partitions; partition++) {
        store.put(metaKey.partition(made.id, partition), emptyPartition);
      }
      return made;
    });
  }
  const [problem] = topicProblems(entry, spec);
  if (problem !== undefined) throw problem;
  return describe(spec.name, entry);
}

/** Removes the topic with its groups. Batches go in steps, so that no transaction grows large. */
export async function deleteTopic(store: Store, name: string): Promise<void> {
  const entry = await store.write(() => {
    const found = requireTopic(store, name);
    store.remove(metaKey.topic(name));
    for (const prefix of [metaKey.partitionsOf, metaKey.groupsOf, metaKey.ownershipsOf]) {
      const start = prefix(found.id);
      for (const key of [...store.meta.getKeys({ start, end: `${start}\uffff` })]) store.remove(key);
    }
    store.announce(found.id);
    return found;
  });
  const start = Buffer.from(entry.id, 'hex');
  const end = Buffer.concat([start, Buffer.alloc(13, 0xff)]);
  for (let left = true; left; ) {
    left = await store.write(() => {
      const keys = [...store.records.getKeys({ start, end, limit: 100 })].map((key) => Buffer.from(key));
      for (const key of keys) {
        store.addSize(-(store.batch(key)?.length ?? 0));
        store.removeBatch(key);
      }
      return keys.length > 0;
    });
  }
}
