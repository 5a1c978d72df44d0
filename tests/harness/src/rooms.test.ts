import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The rule of imports (docs/architecture.md): what each room may depend on, ours and others'. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  'libs/core': [],
  'libs/flow': ['core'],
  'libs/config': ['core', 'mapping', 'zod', 'yaml'],
  'libs/telemetry': ['core', 'pino', 'prom-client'],
  'libs/wire': ['core'],
  'libs/mapping': ['core'],
  'libs/source-mysql': ['checkpoint', 'core', 'flow', 'telemetry', 'wire', 'fzstd', 'mysql2'],
  'libs/checkpoint': ['core'],
  'libs/checkpoint-mysql': ['core', 'checkpoint', 'mysql2'],
  'libs/checkpoint-topic': ['core', 'checkpoint', 'transport'],
  'libs/transport': ['core'],
  'libs/transport-kafka': ['core', 'flow', 'transport', 'telemetry', 'kafkajs', '@node-rs/crc32'],
  'libs/transport-log': ['core', 'flow', 'transport', 'telemetry', 'lmdb'],
  'libs/sink': ['core'],
  'libs/sink-redis': ['core', 'mapping', 'sink', 'telemetry', 'ioredis'],
  'libs/sink-elasticsearch': ['core', 'mapping', 'sink', 'telemetry', '@elastic/elasticsearch'],
  'services/reader': ['core', 'flow', 'telemetry', 'wire', 'source-mysql', 'checkpoint', 'transport'],
  'services/drill': ['core', 'sink', 'source-mysql', 'verifier', 'mysql2'],
  'services/verifier': ['core', 'flow', 'wire', 'checkpoint', 'sink', 'source-mysql', 'writer'],
  'services/writer': ['core', 'flow', 'telemetry', 'wire', 'sink', 'transport'],
};

function manifest(folder: string): { dependencies?: Record<string, string>; devDependencies?: Record<string, string> } {
  return JSON.parse(readFileSync(`${ROOT}${folder}/package.json`, 'utf8'));
}

test('every room depends on what the rule of imports allows, and on nothing else', () => {
  const found = ['libs', 'services'].flatMap((parent) =>
    readdirSync(`${ROOT}${parent}`)
      .filter((name) => existsSync(`${ROOT}${parent}/${name}/package.json`))
      .map((name) => `${parent}/${name}`),
  );
  for (const folder of found) {
    if (folder === 'services/mysync') continue;
    const allowed = ROOMS[folder];
    assert.ok(allowed, `${folder} is not in the list of rooms`);
    const used = Object.keys(manifest(folder).dependencies ?? {}).map((name) => name.replace(/^@mysync\//, ''));
    assert.deepEqual(
      used.filter((name) => !allowed.includes(name)),
      [],
      `${folder} uses what it may not`,
    );
  }
});

test('every version is exact', () => {
  for (const folder of Object.keys(ROOMS)) {
    const { dependencies, devDependencies } = manifest(folder);
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
      assert.match(version, /^\d+\.\d+\.\d+$/, `${folder}: ${name} ${version}`);
    }
  }
});

test('a test reference never leads from production code to the tests', () => {
  for (const folder of [...Object.keys(ROOMS), 'services/mysync']) {
    const used = Object.keys(manifest(folder).dependencies ?? {});
    assert.ok(!used.includes('@mysync/harness'), `${folder} depends on the test harness`);
  }
});
