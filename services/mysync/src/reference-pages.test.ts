import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { optionGroups } from '@mysync/config';
import { createMetrics } from '@mysync/telemetry';
import { catalogues } from './catalogues.ts';
import { referencePages } from './reference-pages.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

test('the reference pages are up to date (npm run docs)', async () => {
  for (const [name, text] of await referencePages()) {
    assert.equal(
      readFileSync(join(ROOT, 'docs/reference', name), 'utf8'),
      text,
      `docs/reference/${name} is out of date`,
    );
  }
});

test('every option is described', () => {
  for (const group of optionGroups()) {
    for (const option of group.options) assert.notEqual(option.description, '', option.path);
  }
});

/** The sources of libs and services, tests left out. */
function sources(): readonly string[] {
  const rooms = ['libs', 'services'].flatMap((parent) =>
    readdirSync(join(ROOT, parent)).map((room) => join(ROOT, parent, room, 'src')),
  );
  return rooms.flatMap((room) =>
    readdirSync(room, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !/\.(test|bench|fixture)\.ts$/.test(file))
      .map((file) => readFileSync(join(room, file), 'utf8')),
  );
}

test('every metric that is declared is set somewhere', () => {
  const text = sources().join('\n');
  const { source, reader, writer } = createMetrics();
  const names = [source, reader, writer].flatMap((group) => Object.keys(group));
  assert.ok(names.length > 30);
  const unset = names.filter((name) => !new RegExp(`\\.${name}\\s*\\.(inc|set|observe)\\(`).test(text));
  assert.deepEqual(unset, []);
});

/** The name of every catalogue that they declare. */
function declaredCatalogues(): readonly string[] {
  return sources()
    .flatMap((text) => [...text.matchAll(/^(?:export )?const (\w+) = errorCatalogue\(/gm)])
    .map((match) => match[1] ?? '');
}

test('every catalogue of errors is in the reference', () => {
  assert.deepEqual(catalogues.map(({ name }) => name).sort(), [...declaredCatalogues()].sort());
});

test('error codes are unique in the whole system, and every one has a remedy', () => {
  const seen = new Map<string, string>();
  for (const { name, entries } of catalogues) {
    for (const [code, { remedy }] of Object.entries(entries)) {
      assert.equal(seen.get(code), undefined, `${code} stands in ${seen.get(code)} and in ${name}`);
      assert.match(code, /^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/);
      assert.ok(remedy.length >= 10, `${code} has no remedy`);
      seen.set(code, name);
    }
  }
});
