/** TLS and SASL against a broker that demands them. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { isMysyncError } from '@mysync/core';
import { TestServer, until } from '@mysync/harness';
import kafkajs, { Kafka, logLevel } from 'kafkajs';
import { createKafkaTransport } from './kafka-transport.ts';
import type { KafkaOptions, KafkaSasl } from './options.ts';
import { readAll, record, spec, topicName } from './testing.ts';

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs;
const run = promisify(execFile);
const PLAIN: KafkaSasl = { mechanism: 'plain', username: 'mysync', password: 'secret' };
/** kafkajs logs in again 10 s before this is over. */
const SESSION_MS = 11_500;

const server = new TestServer('kafka');
let folder: string;
let port: number;
let certificate: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mysync-tls-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  await run('openssl', [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '2',
    '-keyout',
    key,
    '-out',
    cert,
    ...subject,
  ]);
  certificate = await readFile(cert, 'utf8');
  const store = join(folder, 'store.pem');
  await writeFile(store, `${await readFile(key, 'utf8')}${certificate}`);
  await server.up();
  port = Number(server.get('KAFKA_BROKERS').split(':')[1]);
  await server.down();
  const scram = 'org.apache.kafka.common.security.scram.ScramLoginModule required;';
  await server.up([
    `listeners=PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${port + 10},SECURE://127.0.0.1:${port + 5},OPEN://127.0.0.1:${port + 6}`,
    `advertised.listeners=PLAINTEXT://127.0.0.1:${port},SECURE://localhost:${port + 5},OPEN://127.0.0.1:${port + 6}`,
    'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL,OPEN:SASL_PLAINTEXT',
    'sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
    'authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer',
    'super.users=User:ANONYMOUS',
    'allow.everyone.if.no.acl.found=true',
    'listener.name.open.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_mysync="secret";',
    `listener.name.open.plain.connections.max.reauth.ms=${SESSION_MS}`,
    `listener.name.open.scram-sha-256.sasl.jaas.config=${scram}`,
    `listener.name.open.scram-sha-512.sasl.jaas.config=${scram}`,
    'listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_mysync="secret";',
    `listener.name.secure.scram-sha-256.sasl.jaas.config=${scram}`,
    `listener.name.secure.scram-sha-512.sasl.jaas.config=${scram}`,
    'listener.name.secure.ssl.keystore.type=PEM',
    `listener.name.secure.ssl.keystore.location=${store}`,
  ]);
});

after(async () => {
  await server.wipe();
  await rm(folder, { recursive: true });
});

async function roundTrip(options: KafkaOptions): Promise<void> {
  const transport = createKafkaTransport({ connectionTimeoutMs: 3000, ...options });
  try {
    const topic = topicName();
    await transport.ensureTopic(spec(topic));
    const publisher = await transport.openPublisher({ topic, producer: topic, previous: null });
    await publisher.publish(0, [record('a'), record('b')]);
    assert.equal((await readAll(transport, topic)).length, 2);
    const consumer = await transport.openConsumer({ topic, group: topic, maxBatchBytes: 1000, handoverMs: 1000 });
    const stop = new AbortController();
    await consumer.run(async (partition) => {
      for await (const { nextOffset } of partition.batches(0)) {
        await partition.commit(nextOffset);
        if (nextOffset === 2) stop.abort();
      }
    }, stop.signal);
    assert.deepEqual(await transport.committedOffsets(topic, topic), [2]);
  } finally {
    await transport.close();
  }
}

const denied = async (options: KafkaOptions): Promise<void> => {
  const transport = createKafkaTransport(options);
  const findings = await transport.check(spec(topicName()));
  assert.equal(findings[0]?.code, 'TRANSPORT_DENIED', JSON.stringify(findings));
  assert.equal(findings[0]?.level, 'error');
  assert.ok(!JSON.stringify(findings).includes(options.sasl?.password ?? '?'), 'the password is not told');
  await assert.rejects(transport.describeTopic('t'), (error) => isMysyncError(error, 'TRANSPORT_DENIED'));
  await transport.close();
};

test('plain, without TLS', async () => {
  await roundTrip({ brokers: [`127.0.0.1:${port + 6}`], sasl: PLAIN });
});

test('plain over TLS, with the authority given', async () => {
  await roundTrip({ brokers: [`localhost:${port + 5}`], sasl: PLAIN, tls: { ca: certificate } });
});

test('a user who may not see the settings of brokers is told mildly what was not looked at', async () => {
  const options: KafkaOptions = { brokers: [`127.0.0.1:${port + 6}`], sasl: PLAIN };
  const ofNames = async (): Promise<readonly string[]> => {
    const transport = createKafkaTransport(options);
    const findings = await transport.check(spec(topicName()));
    await transport.close();
    return findings
      .filter(({ code }) => code === 'KAFKA_PRODUCER_FORGOTTEN')
      .map(({ level, message }) => `${level} ${message}`);
  };
  assert.deepEqual(await ofNames(), ['ok the brokers remember a producer for longer than a reader keeps silent']);
  const admin = new Kafka({ brokers: [`127.0.0.1:${port}`], logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    const acl = {
      resourceType: AclResourceTypes.CLUSTER,
      resourceName: 'kafka-cluster',
      resourcePatternType: ResourcePatternTypes.LITERAL,
      principal: 'User:another',
      host: '*',
      operation: AclOperationTypes.DESCRIBE_CONFIGS,
      permissionType: AclPermissionTypes.ALLOW,
    };
    await admin.createAcls({ acl: [acl] });
    await until('the right is gone', async () => {
      const [told = '', ...more] = await ofNames();
      return more.length === 0 && /^ok .*could not be read .*DescribeConfigs/.test(told);
    });
    await admin.deleteAcls({ filters: [acl] });
  } finally {
    await admin.disconnect();
  }
});

test('a right that is taken away is waited for, by who publishes and by who reads; who never had it is told at once', async () => {
  const topic = topicName();
  const told: string[] = [];
  const options: KafkaOptions = { brokers: [`127.0.0.1:${port + 6}`], sasl: PLAIN };
  const transport = createKafkaTransport({ ...options, observer: { log: ({ message }) => told.push(message) } });
  const stranger = createKafkaTransport(options);
  const admin = new Kafka({ brokers: [`127.0.0.1:${port}`], logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    await transport.ensureTopic(spec(topic));
    const publisher = await transport.openPublisher({ topic, producer: topic, previous: null });
    const sent = [publisher.publish(0, [record('a')])];
    await Promise.all(sent);
    const resource = {
      resourceType: AclResourceTypes.TOPIC,
      resourceName: topic,
      resourcePatternType: ResourcePatternTypes.LITERAL,
      host: '*',
      permissionType: AclPermissionTypes.ALLOW,
    };
    const acl = [
      { ...resource, principal: 'User:mysync', operation: AclOperationTypes.DESCRIBE },
      { ...resource, principal: 'User:another', operation: AclOperationTypes.WRITE },
    ];
    await admin.createAcls({ acl });
    await until('the right is gone', () => {
      if (told.some((message) => message.includes('may not write'))) return true;
      sent.push(publisher.publish(0, [record('b')]));
      return false;
    });
    await assert.rejects(readAll(transport, topic), { code: 'TRANSPORT_ACCESS_LOST', retriable: true });
    const other = await stranger.openPublisher({ topic, producer: `${topic}-2`, previous: null });
    await assert.rejects(other.publish(0, [record('c')]), { code: 'TRANSPORT_DENIED', retriable: false });
    await admin.deleteAcls({ filters: acl });
    const offsets = (await Promise.all(sent)).map(({ baseOffset }) => baseOffset);
    assert.deepEqual(
      offsets,
      offsets.map((_, index) => index),
      'in order, each once',
    );
    const records = await until('it may be read', () => readAll(transport, topic).catch(() => undefined));
    assert.equal(records.length, sent.length);
  } finally {
    await admin.disconnect();
    await transport.close();
    await stranger.close();
  }
});

test('a member whose right to its group is taken away commits once it is back', async () => {
  const topic = topicName();
  const told: string[] = [];
  const observer = { log: ({ message }: { message: string }) => told.push(message) };
  const transport = createKafkaTransport({ brokers: [`127.0.0.1:${port + 6}`], sasl: PLAIN, observer });
  const admin = new Kafka({ brokers: [`127.0.0.1:${port}`], logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    await transport.ensureTopic(spec(topic));
    const publisher = await transport.openPublisher({ topic, producer: topic, previous: null });
    await publisher.publish(0, [record('a'), record('b')]);
    const consumer = await transport.openConsumer({ topic, group: topic, maxBatchBytes: 1000, handoverMs: 1000 });
    const stop = new AbortController();
    const acl = {
      resourceType: AclResourceTypes.GROUP,
      resourceName: topic,
      resourcePatternType: ResourcePatternTypes.LITERAL,
      host: '*',
      permissionType: AclPermissionTypes.ALLOW,
      principal: 'User:another',
      operation: AclOperationTypes.READ,
    };
    let turns = 0;
    await consumer.run(async (partition) => {
      turns += 1;
      if (turns === 1) {
        await partition.commit(1);
        await admin.createAcls({ acl: [acl] });
        await until('it is denied', () => told.some((message) => /ACCESS_LOST|not authorized/i.test(message)));
        const late = partition.commit(2).catch(() => undefined);
        await admin.deleteAcls({ filters: [acl] });
        await late;
        if (!partition.revoked.aborted) stop.abort();
      } else {
        await partition.commit(2);
        stop.abort();
      }
    }, stop.signal);
    assert.deepEqual(await transport.committedOffsets(topic, topic), [2]);
  } finally {
    await admin.disconnect();
    await transport.close();
  }
});

test('a wrong password is told as such', async () => {
  await denied({ brokers: [`127.0.0.1:${port + 6}`], sasl: { ...PLAIN, password: 'guessed' } });
  await denied({
    brokers: [`127.0.0.1:${port + 6}`],
    sasl: { ...PLAIN, mechanism: 'scram-sha-512', password: 'guessed' },
  });
});

test('an authority that is not trusted ends the connection, and check says why', async () => {
  const transport = createKafkaTransport({ brokers: [`localhost:${port + 5}`], sasl: PLAIN, tls: true });
  const findings = await transport.check(spec(topicName()));
  assert.equal(findings[0]?.code, 'TRANSPORT_UNREACHABLE');
  assert.match(findings[0]?.message ?? '', /self-signed certificate/);
  await transport.close();
});

test('scram-sha-256 and scram-sha-512, over TLS', async () => {
  const jars = new URL(`../../../.cache/servers/kafka/${server.get('KAFKA_VERSION')}/*`, import.meta.url).pathname;
  const services = process.env.MYSYNC_SERVICES;
  const classpath = services === undefined ? jars : join(services, 'kafka', server.get('KAFKA_VERSION'), '*');
  for (const mechanism of ['scram-sha-256', 'scram-sha-512'] as const) {
    const username = `user-of-${mechanism}`;
    const config = `${mechanism.toUpperCase()}=[password=salt-and-pepper]`;
    await run('java', [
      ...['-XX:TieredStopAtLevel=1', '-cp', classpath, 'kafka.admin.ConfigCommand'],
      ...['--bootstrap-server', `127.0.0.1:${port}`, '--alter', '--add-config', config],
      ...['--entity-type', 'users', '--entity-name', username],
    ]);
    const sasl = { mechanism, username, password: 'salt-and-pepper' };
    await roundTrip({ brokers: [`localhost:${port + 5}`], sasl, tls: { ca: certificate } });
  }
});

test('a session that the broker limits is renewed on the same connection, in order', async () => {
  let resent = 0;
  const transport = createKafkaTransport({
    brokers: [`127.0.0.1:${port + 6}`],
    sasl: PLAIN,
    observer: {
      batchesResent: () => {
        resent++;
      },
    },
  });
  const topic = topicName();
  await transport.ensureTopic(spec(topic));
  const publisher = await transport.openPublisher({ topic, producer: topic, previous: null });
  const end = performance.now() + SESSION_MS * 1.3;
  let next = 0;
  await until(
    'the session would have ended',
    async () => {
      const open = Array.from({ length: publisher.maxOpenBatches }, () => publisher.publish(0, [record('k')]));
      for (const { baseOffset } of await Promise.all(open)) assert.equal(baseOffset, next++);
      return performance.now() > end;
    },
    { everyMs: 20 },
  );
  assert.equal(resent, 0, 'no connection was lost');
  await transport.close();
});
