/** A few seeds of the fault suite; `npm run faults` runs as many as one likes. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runSuite } from './suite.ts';

for (const { transport, from, to } of [
  // processes and leaders die in these
  { transport: 'log', from: 5, to: 7 },
  { transport: 'kafka', from: 8, to: 9 },
] as const) {
  test(`${transport}: seeds ${from} to ${to}, nothing lost, wrong or backward`, async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'mysync-faults-'));
    const results = await runSuite({
      transport,
      from,
      to,
      resume: false,
      rate: 500,
      focus: [],
      results: join(folder, 'results.jsonl'),
      stopAtFailure: false,
      keep: false,
      folder,
      say: (text) => context.diagnostic(text),
    });
    for (const { seed, complaints, suiteErrors } of results)
      assert.deepEqual([...complaints, ...suiteErrors], [], `seed ${seed}; logs: ${folder}`);
    assert.equal(results.length, to - from + 1);
    await rm(folder, { recursive: true });
  });
}
