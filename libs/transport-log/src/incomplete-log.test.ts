import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { IncompleteLog, type TopicSpec } from '@mysync/transport';
import { LogTransport } from './index.ts';

const spec: TopicSpec = {
  name: 'shop',
  partitions: 4,
  compacted: true,
  deleteRetentionMs: 7 * 86_400_000,
  minCompactionLagMs: 0,
  retentionMs: -1,
  allowWeaker: false,
};

test('a log is whole until it is noted otherwise, for everybody, and again once it was filled', async () => {
  const path = await mkdtemp(join(tmpdir(), 'incomplete-'));
  let transport = await LogTransport.open({ path, maintenance: false });
  const log = (): IncompleteLog => new IncompleteLog(transport, spec);
  assert.equal(await log().read(), false);
  await log().filled();
  assert.equal(await transport.describeTopic('shop.incomplete'), null, 'nothing is made where nothing is noted');
  await log().note('bin.000001:4');
  await log().note('bin.000001:5');
  assert.equal(await log().read(), true);
  await transport.close();
  transport = await LogTransport.open({ path, maintenance: false });
  assert.equal(await log().read(), true);
  assert.equal(await new IncompleteLog(transport, { ...spec, name: 'other' }).read(), false);
  await log().filled();
  assert.equal(await log().read(), false);
  await transport.close();
  await rm(path, { recursive: true });
});
