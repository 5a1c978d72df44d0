import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FAULT_KINDS } from './fault-kinds.ts';
import { MUTATIONS } from './mutations.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

test('every mutation still has its line, and its faults', () => {
  for (const { name, edits, focus } of MUTATIONS) {
    for (const { file, find } of edits) {
      assert.equal(readFileSync(`${ROOT}${file}`, 'utf8').split(find).length, 2, `${name}: '${find}' in ${file}`);
    }
    for (const text of focus.split(',')) {
      assert.ok(
        FAULT_KINDS.some((kind) => kind.name.includes(text)),
        `${name}: no fault '${text}'`,
      );
    }
  }
});
