// `npm run transcriber`, and a step of each build: compiles the module that transcribes rows and writes it where the source loads it from,
// unless it is there and was made of these very files. The compilers are installed here, when they are first needed.
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
    execFileSync(asc, ['index.ts', ...options, '--outFile', file], { cwd: HERE, stdio: ['ignore', 2, 2] });
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

/** Of all that the module is made of. */
function sourceHash() {
  const files = readdirSync(HERE).filter((name) => /\.(ts|mjs)$|^package-lock\.json$/.test(name));
  const hash = createHash('sha256');
  for (const file of [...files.sort().map((name) => join(HERE, name)), LAYOUT]) hash.update(readFileSync(file));
  return hash.digest('hex');
}

/** The first line tells what it was made of. */
const MADE_OF = `// Made by \`npm run transcriber\` of ${sourceHash()}\n`;

function asText(bytes) {
  const lines = bytes.toString('base64').match(/.{1,110}/g);
  return `${MADE_OF}/** The module's bytes, in base64. */
export const MODULE: string = [
${lines.map((line) => `  '${line}',`).join('\n')}
].join('');
`;
}

if (!existsSync(TARGET) || !readFileSync(TARGET, 'utf8').startsWith(MADE_OF)) {
  if (!existsSync(join(HERE, 'node_modules/.package-lock.json'))) {
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: HERE, stdio: ['ignore', 2, 2] });
  }
  writeFileSync(TARGET, asText(await optimised(compiled())));
}
