import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { randomName } from '@mysync/harness';
import { LogTransport } from '@mysync/transport-log';
import { type TransportBench, topicStoreTests } from './topic-store.fixture.ts';

const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
let bench: TransportBench;

before(async () => {
  bench = {
    transport: await LogTransport.open({ path, maintenance: false }),
    topicName: () => randomName('checkpoint'),
  };
});

after(async () => {
  await bench.transport.close();
  rmSync(path, { recursive: true, force: true });
});

topicStoreTests('the embedded log', () => bench);
