// `npm test`: sets up what is missing, checks the code, runs all tests against real servers, ends with one line.
//   npm test -- PATTERN …     only test files whose path holds one of the patterns
//   npm test -- --unit        only those that need no server
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { run as runTests } from 'node:test';
import { checkCode, installPackages, ROOT, servers, workspaces } from './steps.mjs';

const SERVER_SUFFIX = /\.(mysql|mariadb|kafka|redis|elasticsearch|e2e)\.test\.js$/;
const FILE_TIMEOUT_MS = 15 * 60_000;

const args = process.argv.slice(2);
const unitOnly = args.includes('--unit');
const patterns = args.filter((arg) => !arg.startsWith('--'));

function testFiles() {
  const found = workspaces().flatMap((folder) => {
    const dist = join(ROOT, folder, 'dist');
    return readdirSync(dist, { recursive: true })
      .filter((name) => name.endsWith('.test.js'))
      .map((name) => join(dist, name));
  });
  return found
    .filter((file) => patterns.length === 0 || patterns.some((pattern) => relative(ROOT, file).includes(pattern)))
    .sort();
}

const totals = { passed: 0, failed: 0, skipped: 0 };

function report(event, file) {
  const { details, name, nesting, skip } = event.data;
  // a file counts through its tests, unless it failed as a whole (a crash, a timeout)
  const whole = details?.type === 'suite' || (nesting === 0 && event.data.file === undefined);
  if (event.type === 'test:fail') {
    const error = details.error?.cause ?? details.error;
    if (!whole || details.error?.failureType !== 'subtestsFailed') totals.failed += 1;
    console.log(`FAIL ${file}: ${name}\n${String(error?.stack ?? error)}`);
  } else if (!whole) {
    if (skip !== undefined) {
      totals.skipped += 1;
      console.log(`skip ${file}: ${name} (${skip})`);
    } else {
      totals.passed += 1;
    }
  }
}

/** Runs the files; prints a line per file as soon as all its tests have ended. */
async function runAll(files, concurrency) {
  if (files.length === 0) return;
  let current = null;
  const endFile = () => {
    if (current === null) return;
    const { file, before, since } = current;
    const passed = totals.passed - before.passed;
    const failed = totals.failed - before.failed;
    const seconds = ((performance.now() - since) / 1000).toFixed(0);
    console.log(
      `  ${failed > 0 ? 'FAILED' : 'ok'} ${file}: ${passed} passed${failed > 0 ? `, ${failed} failed` : ''}, ${seconds} s`,
    );
    current = null;
  };
  const stream = runTests({ files, concurrency, timeout: FILE_TIMEOUT_MS });
  for await (const event of stream) {
    if (event.type !== 'test:fail' && event.type !== 'test:pass') continue;
    const file = event.data.file === undefined ? '' : relative(ROOT, event.data.file);
    if (current?.file !== file) {
      endFile();
      current = { file, before: { ...totals }, since: performance.now() };
    }
    report(event, file);
  }
  endFile();
}

installPackages();
checkCode();
const files = testFiles();
const withServers = files.filter((file) => SERVER_SUFFIX.test(file));
const without = files.filter((file) => !SERVER_SUFFIX.test(file));
const start = performance.now();
process.env.NODE_OPTIONS = '--enable-source-maps';
console.log(`> ${without.length} files that need no server`);
await runAll(without, 2);
if (!unitOnly && withServers.length > 0) {
  servers('install');
  try {
    console.log(`> ${withServers.length} files on real servers`);
    await runAll(withServers, 2);
  } finally {
    servers('wipe');
  }
}
if (totals.passed + totals.failed === 0) totals.failed = 1;
console.log(`tests took ${((performance.now() - start) / 1000).toFixed(0)} s`);
console.log(
  `${totals.passed} passed, ${totals.failed} failed${totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''}`,
);
process.exit(totals.failed > 0 ? 1 : 0);
