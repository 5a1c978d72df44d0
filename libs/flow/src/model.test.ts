/**
 * The delivery protocol in random runs around the real parts (model-simulation.ts). Settings by environment:
 * MYSYNC_MODEL_RUNS how many, MYSYNC_MODEL_SEED one seed only, printed in full.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MUTATIONS, type Mutation, type Seen } from './model-log.ts';
import { simulate } from './model-simulation.ts';

const RUNS = Number(process.env['MYSYNC_MODEL_RUNS'] ?? 50_000);
const SEED = process.env['MYSYNC_MODEL_SEED'];
/** Of the mutations the rarest is noticed about once in 400 runs. */
const MUTATION_RUNS = 20_000;

function reproduce(seed: number): string {
  return `MYSYNC_MODEL_SEED=${seed} node --enable-source-maps --test libs/flow/dist/model.test.js`;
}

test('every run ends equal to the table and no key goes back', (context) => {
  const first = SEED === undefined ? 0 : Number(SEED);
  const runs = SEED === undefined ? RUNS : 1;
  const seen: Record<string, number> = {};
  const started = process.cpuUsage();
  for (let seed = first; seed < first + runs; seed++) {
    const report = simulate(seed);
    assert.deepEqual(report.failures, [], `${report.detail}\nreproduce with: ${reproduce(seed)}`);
    for (const key of Object.keys(report.seen) as (keyof Seen)[]) seen[key] = (seen[key] ?? 0) + report.seen[key];
  }
  const { user, system } = process.cpuUsage(started);
  context.diagnostic(`${runs} runs, ${Math.round((runs * 1e6) / (user + system))} runs per CPU second`);
  context.diagnostic(JSON.stringify(seen));
  if (SEED !== undefined) return;
  for (const [what, count] of Object.entries(seen)) assert.ok(count > runs / 20, `hardly any ${what}: ${count}`);
});

for (const [mutation, meaning] of Object.entries(MUTATIONS)) {
  test(`noticed when switched off: ${mutation} (${meaning})`, { skip: SEED !== undefined }, (context) => {
    for (let seed = 0; seed < MUTATION_RUNS; seed++) {
      const { failures } = simulate(seed, [mutation as Mutation]);
      if (failures.length === 0) continue;
      context.diagnostic(`seed ${seed}: ${failures.join(', ')}`);
      return;
    }
    assert.fail(`${MUTATION_RUNS} runs ended well without this rule`);
  });
}
