import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FileCheckpointStore, readSchemaHistoryFile, schemaHistoryPath } from '@mysync/checkpoint';
import { type SourcePosition, systemClock, type TableRef } from '@mysync/core';
import type { HistoryEntry, HistoryFact, HistoryIndex } from './history-index.ts';
import { KeptHistory } from './kept-history.ts';

const at = (offset: number): SourcePosition => ({ file: 'bin.000001', offset, gtidSet: '' });
const ref = (table: string): TableRef => ({ database: 'd', table });
const captures = ({ table }: TableRef): boolean => table.startsWith('captured');
const definition = (n: number): HistoryFact => ({
  kind: 'definition',
  definition: { columns: [], keys: [], charset: `c${n}` } as unknown as Extract<
    HistoryFact,
    { kind: 'definition' }
  >['definition'],
  origin: 'catalogue',
  by: '',
});
const statement = (base: 'creates' | 'drops' | ''): HistoryFact => ({
  kind: 'statement',
  statement: 'ALTER',
  database: 'd',
  sqlMode: 0,
  base,
});
const charsetOf = (entry: HistoryEntry | undefined): unknown =>
  entry?.fact.kind === 'definition' ? (entry.fact.definition as unknown as { charset: string }).charset : undefined;

async function withHistory(
  run: (kept: KeptHistory, index: HistoryIndex, path: string) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'mysync-kept-'));
  const path = join(folder, 'c');
  const store = await FileCheckpointStore.open({ path });
  try {
    const schemaHistory = await store.schemaHistory();
    const kept = new KeptHistory({ schemaHistory, rowMetadata: 'history', clock: systemClock, captures });
    const index = await kept.open(at(4));
    assert.ok(index !== undefined);
    await run(kept, index, schemaHistoryPath(path));
  } finally {
    await store.close();
    await rm(folder, { recursive: true });
  }
}

test('a history stays as large as what is alive, however long its reader runs', async () => {
  await withHistory(async (kept, index, path) => {
    await index.add([{ position: at(5), table: ref('captured_quiet'), fact: definition(0) }]);
    for (let n = 1; n <= 1000; n += 1) {
      const position = at(10 * n);
      await index.add([{ position, table: ref('captured'), fact: statement('') }]);
      await index.add([{ position, table: ref('captured'), fact: definition(n) }]);
      // made and dropped, captured by nobody
      await index.add([{ position, table: ref(`other_${n}`), fact: statement(n % 2 === 0 ? 'creates' : 'drops') }]);
      if (n % 2 === 0)
        await index.add([{ position: at(10 * n + 1), table: ref(`other_${n}`), fact: statement('drops') }]);
      // the checkpoint is some way behind
      if (n > 5) await kept.settled(at(10 * (n - 5)));
      assert.ok(index.size < 150, `${index.size} entries after ${n}`);
      const known = index.of(ref('captured'));
      for (const back of [5, 3, 0]) {
        if (n <= back) continue;
        const newest = known.findLast(
          ({ position: { offset }, fact: { kind } }) => kind === 'definition' && offset <= 10 * (n - back),
        );
        assert.equal(charsetOf(newest), `c${n - back}`);
      }
      assert.equal(charsetOf(index.of(ref('captured_quiet'))[0]), 'c0');
    }
    const stored = await readSchemaHistoryFile(path);
    assert.equal(stored?.entries.length, index.size);
  });
});

test('what is added while it is pruned stays', async () => {
  await withHistory(async (kept, index, path) => {
    const fill = async (from: number): Promise<void> => {
      for (let n = from; n < from + 200; n += 1)
        await index.add([{ position: at(n), table: ref('captured'), fact: definition(n) }]);
    };
    await fill(10);
    await Promise.all([kept.settled(at(209)), fill(300)]);
    assert.equal(index.size, 201);
    assert.deepEqual((await readSchemaHistoryFile(path))?.entries.length, 201);
    assert.deepEqual(
      index.of(ref('captured')).map(({ position }) => position.offset),
      [209, ...Array.from({ length: 200 }, (_, i) => 300 + i)],
    );
  });
});
