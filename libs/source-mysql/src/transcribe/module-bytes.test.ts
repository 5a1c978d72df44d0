/** The compiled module and its source: whoever changes one makes the other (`npm run transcriber`). */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SOURCE_HASH } from './module-bytes.ts';

const ASSEMBLY = fileURLToPath(new URL('../../assembly/', import.meta.url));
const LAYOUT = join(ASSEMBLY, '../src/transcribe/layout.ts');

it('the module was made of what stands in assembly/', () => {
  const files = readdirSync(ASSEMBLY).filter((name) => /\.(ts|mjs)$|^package-lock\.json$/.test(name));
  const hash = createHash('sha256');
  for (const file of [...files.sort().map((name) => join(ASSEMBLY, name)), LAYOUT]) hash.update(readFileSync(file));
  assert.equal(hash.digest('hex'), SOURCE_HASH, 'npm run transcriber');
});
