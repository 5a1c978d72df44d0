import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readHistory } from './file-schema-history.ts';
import { FileCheckpointStore, schemaHistoryPath } from './file-store.ts';
import { coversHead } from './schema-history.ts';
import { sampleEntry, schemaHistoryConformance } from './schema-history-conformance.ts';

async function place(): Promise<{ path: string; dispose: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'mysync-history-'));
  return { path: join(folder, 'shop.json'), dispose: () => rm(folder, { recursive: true, force: true }) };
}

schemaHistoryConformance('file', async () => {
  const { path, dispose } = await place();
  return {
    open: async () => {
      const store = await FileCheckpointStore.open({ path });
      return { history: await store.schemaHistory(), close: () => store.close() };
    },
    damage: async () => {
      const content = await readFile(schemaHistoryPath(path), 'utf8');
      await writeFile(schemaHistoryPath(path), content.replace('sequence', 'sequenze'));
    },
    dispose,
  };
});

test('a process that was killed while it added leaves what was confirmed', async () => {
  const { path, dispose } = await place();
  const store = await FileCheckpointStore.open({ path });
  const history = await store.schemaHistory();
  await history.begin();
  const head = await history.append([sampleEntry(1)]);
  await store.close();
  const whole = await readFile(schemaHistoryPath(path), 'utf8');
  const half = whole.trimEnd().split('\n')[1]?.slice(0, 40) ?? '';
  await appendFile(schemaHistoryPath(path), half);
  assert.deepEqual((await readHistory(schemaHistoryPath(path)))?.entries, [sampleEntry(1)]);
  const next = await FileCheckpointStore.open({ path });
  const opened = await next.schemaHistory();
  await opened.append([sampleEntry(2)]);
  const stored = await opened.load();
  assert.deepEqual(stored?.entries, [sampleEntry(1), sampleEntry(2)]);
  assert.ok(coversHead(stored, head));
  await next.close();
  await dispose();
});

test('a history that lost an addition, or another one, does not cover what a checkpoint took down', async () => {
  const { path, dispose } = await place();
  const store = await FileCheckpointStore.open({ path });
  const history = await store.schemaHistory();
  await history.begin();
  const head = await history.append([sampleEntry(1)]);
  assert.ok(coversHead(await history.load(), head));
  await store.close();
  const whole = await readFile(schemaHistoryPath(path), 'utf8');
  await writeFile(schemaHistoryPath(path), whole.split('\n').slice(0, 1).join('\n').concat('\n'));
  const cut = await readHistory(schemaHistoryPath(path));
  assert.ok(cut !== null && !coversHead(cut, head));
  assert.ok(!coversHead(null, head) && !coversHead(cut, null));
  await dispose();
});
