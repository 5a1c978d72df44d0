// `npm run transcriber`: compiles the module that transcribes rows and writes it where the source loads it from. The compilers are
// installed here, on first use.
// With --check: fails when what is there was not made of these files.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const LAYOUT = join(HERE, '../src/transcribe/layout.ts');
const TARGET = join(HERE, '../src/transcribe/module-bytes.ts');
/** Where the module's own tables begin: what `layout.ts` places comes behind them. */
const FIRST_BYTE = '1024';
/**
 * Sizes up to which functions are inlined. V8 inlines none in a module: with binaryen's own sizes a row costs two and a half times as much, with
 * greater ones no less (measured on Node 20).
 */
const INLINE = { always: 150, flexible: 300, oneCaller: 5000 };
const ROUNDS = 3;

function compiled() {
  const folder = mkdtempSync(join(tmpdir(), 'mysync-transcriber-'));
  try {
    const file = join(folder, 'module.wasm');
    const asc = join(HERE, 'node_modules/.bin/asc');
    const options = ['--runtime', 'stub', '--noAssert', '--importMemory', '--memoryBase', FIRST_BYTE];
    execFileSync(asc, ['index.ts', ...options, '--outFile', file], { cwd: HERE, stdio: 'inherit' });
    return readFileSync(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function optimised(bytes) {
  const { default: binaryen } = await import('binaryen');
  const module = binaryen.readBinary(bytes);
  const { BulkMemory, BulkMemoryOpt, MutableGlobals, NontrappingFPToInt, SignExt } = binaryen.Features;
  module.setFeatures(BulkMemory | BulkMemoryOpt | MutableGlobals | NontrappingFPToInt | SignExt);
  binaryen.setOptimizeLevel(3);
  binaryen.setShrinkLevel(0);
  binaryen.setAlwaysInlineMaxSize(INLINE.always);
  binaryen.setFlexibleInlineMaxSize(INLINE.flexible);
  binaryen.setOneCallerInlineMaxSize(INLINE.oneCaller);
  binaryen.setAllowInliningFunctionsWithLoops(true);
  for (let round = 0; round < ROUNDS; round += 1) module.optimize();
  return Buffer.from(module.emitBinary());
}

/** Of all that the module is made of; `module-bytes.test.ts` makes it too. */
function sourceHash() {
  const files = readdirSync(HERE).filter((name) => /\.(ts|mjs)$|^package-lock\.json$/.test(name));
  const hash = createHash('sha256');
  for (const file of [...files.sort().map((name) => join(HERE, name)), LAYOUT]) hash.update(readFileSync(file));
  return hash.digest('hex');
}

function asText(bytes) {
  const lines = bytes.toString('base64').match(/.{1,110}/g);
  return `/** Made of \`assembly/\` by \`npm run transcriber\`. */

/** SHA-256 of what it was made of. */
export const SOURCE_HASH = '${sourceHash()}';
/** In base64. */
export const MODULE: string = [
${lines.map((line) => `  '${line}',`).join('\n')}
].join('');
`;
}

if (!existsSync(join(HERE, 'node_modules'))) execFileSync('npm', ['ci'], { cwd: HERE, stdio: 'inherit' });
const text = asText(await optimised(compiled()));
if (process.argv.includes('--check')) {
  if (readFileSync(TARGET, 'utf8') !== text) {
    process.stderr.write('The transcriber was not made of its source: npm run transcriber\n');
    process.exitCode = 1;
  }
} else writeFileSync(TARGET, text);
