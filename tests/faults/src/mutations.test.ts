import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FAULT_KINDS } from './fault-kinds.ts';
import { MUTATIONS } from './mutations.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

test('every mutation still has its line, and its faults or its test', () => {
  for (const mutation of MUTATIONS) {
    const { name, edits } = mutation;
    for (const { file, find } of edits) {
      assert.equal(readFileSync(`${ROOT}${file}`, 'utf8').split(find).length, 2, `${name}: '${find}' in ${file}`);
    }
    if ('test' in mutation) {
      assert.ok(existsSync(`${ROOT}${mutation.test}`), `${name}: ${mutation.test} is gone`);
      continue;
    }
    for (const text of mutation.focus.split(',')) {
      assert.ok(
        FAULT_KINDS.some((kind) => kind.name.includes(text)),
        `${name}: no fault '${text}'`,
      );
    }
  }
});
