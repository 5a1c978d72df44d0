import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeFolder } from './folders.ts';

test('makes what is missing, and says what cannot be made', (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'mysync-folders-'));
  context.after(() => rmSync(folder, { recursive: true }));
  assert.deepEqual(makeFolder(join(folder, 'a/b'), 0o700), [join(folder, 'a'), join(folder, 'a/b')]);
  assert.equal(statSync(join(folder, 'a/b')).mode & 0o777, 0o700);
  assert.deepEqual(makeFolder(join(folder, 'a/b/c')), [join(folder, 'a/b/c')]);
  assert.deepEqual(makeFolder(join(folder, 'a/b')), []);
  writeFileSync(join(folder, 'file'), '');
  symlinkSync(join(folder, 'nowhere'), join(folder, 'link'));
  assert.throws(() => makeFolder(join(folder, 'file/x')), { code: 'ENOTDIR' });
  assert.throws(() => makeFolder(join(folder, 'link/x')), { code: 'EEXIST' });
  // Node's recursive mkdir never comes back from there
  if (process.platform === 'linux') assert.throws(() => makeFolder('/proc/mysync/x'), { code: 'ENOENT' });
});
