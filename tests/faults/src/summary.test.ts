import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Outcome } from './findings.ts';
import { longPlans } from './long-outages.ts';
import { describe } from './plan.ts';
import type { SeedResult } from './run-seed.ts';
import { isResultOf, readResults } from './suite.ts';
import { exitStatus, linesOf, summarize } from './summary.ts';

function result(seed: number, outcome: Outcome): SeedResult {
  return {
    seed,
    transport: 'log',
    what: '',
    rowsPerSecond: 1000,
    outcome,
    faults: [{ kind: 'kill reader', recoverySeconds: seed }],
    rows: 100,
    lost: outcome === 'failed' ? 1 : 0,
    wrong: 0,
    backward: 0,
    slow: [],
    complaints: outcome === 'failed' ? ['a row is missing'] : [],
    suiteErrors: outcome === 'suite error' ? ['no server'] : [],
    seconds: 1,
    phases: {},
    looks: 1,
  };
}

test('a seed that ended by an error of the suite is named, and counts in no figure', () => {
  const summary = summarize([result(1, 'passed'), result(2, 'suite error'), result(3, 'failed')]);
  const { seeds, faults, rows, lost, failed, suiteErrors, recoverySeconds } = summary;
  assert.deepEqual({ seeds, faults, rows, lost }, { seeds: 2, faults: 2, rows: 200, lost: 1 });
  assert.deepEqual([failed, suiteErrors], [[3], [2]]);
  assert.deepEqual(recoverySeconds['kill reader'], { p50: 1, p99: 3, count: 2 });
});

test('what was found comes before what could not be done', () => {
  assert.equal(exitStatus({ failed: [], suiteErrors: [] }), 0);
  assert.equal(exitStatus({ failed: [3], suiteErrors: [2] }), 1);
  assert.equal(exitStatus({ failed: [], suiteErrors: [2] }), 2);
});

test('a run that goes on leaves out what passed when it was run last, also in files that tell no outcome', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mysync-results-'));
  const file = join(folder, 'log.jsonl');
  const { outcome: _, suiteErrors: __, rowsPerSecond: ___, ...earlier } = result(1, 'passed');
  const lines = [
    earlier,
    { ...earlier, seed: 2, complaints: ['a row is missing'] },
    result(3, 'suite error'),
    result(4, 'suite error'),
    result(4, 'passed'),
    result(5, 'passed'),
    result(5, 'failed'),
    { ...result(6, 'passed'), transport: 'kafka' },
  ];
  await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  assert.deepEqual([...(await readResults(file, 'log')).keys()], [1, 4]);
  await rm(folder, { recursive: true });
});

test('a seed of other flags is another one', () => {
  const [plan] = longPlans(10, 1000, ['kill redis']);
  const [other] = longPlans(10, 1000, ['kill source']);
  assert.ok(plan !== undefined && other !== undefined);
  const known = { what: describe(plan), rowsPerSecond: 1000 };
  assert.equal(isResultOf(known, plan), true);
  assert.equal(isResultOf(known, other), false);
  assert.equal(isResultOf({ ...known, rowsPerSecond: 500 }, plan), false);
});

test('seeds that took long, goals that were missed and faults that were not struck are told, and fail nothing', () => {
  const quick = result(1, 'passed');
  const longer = { ...result(20, 'passed'), seconds: 61, dropped: ['kill redis'], peakMb: 140 };
  const summary = summarize([quick, longer]);
  assert.deepEqual(summary.long, [{ seed: 20, seconds: 61 }]);
  assert.deepEqual(summary.dropped, [{ seed: 20, kinds: ['kill redis'] }]);
  assert.deepEqual(summary.missed, [{ kind: 'kill reader', p99: 20, goal: 15, count: 2 }]);
  assert.deepEqual([summary.faults, summary.peakMb, exitStatus(summary)], [2, 140, 0]);
  const text = linesOf(summary).join('\n');
  assert.match(text, /took longer than a seed should: 20 \(61 s\)/);
  assert.match(text, /planned and not struck: kill redis \(seed 20\)/);
  assert.match(text, /goal missed: kill reader, p99 20 s of 2, is to be under 15 s/);
  assert.deepEqual(summarize([longer], Number.POSITIVE_INFINITY).long, []);
  assert.equal(linesOf(summarize([quick])).length, 1);
});
