/**
 * The contracts of the sink port as tests: every adapter's test file calls `sinkConformance` once per kind of store.
 * They need a real store; each test works on a bench of its own.
 */
import { describe, test } from 'node:test';
import { inspectTests } from './conformance-inspect.ts';
import { type SinkConformanceOptions, Trial } from './conformance-kit.ts';
import { markerTests } from './conformance-marker.ts';
import { orderTests } from './conformance-order.ts';
import { poisonTests } from './conformance-poison.ts';
import { partialTests, valueTests } from './conformance-values.ts';

export type { SinkBench, SinkConformanceOptions, StoredDocument } from './conformance-kit.ts';
export { del, itemRow, items, pairs, put, TrialWriter } from './conformance-kit.ts';

export function sinkConformance(options: SinkConformanceOptions): void {
  const partial = options.mergesPartialRows === false ? {} : partialTests;
  const tests = { ...orderTests, ...markerTests, ...poisonTests, ...valueTests, ...inspectTests, ...partial };
  describe(`sink conformance: ${options.name}`, () => {
    for (const [name, body] of Object.entries(tests)) {
      test(name, async () => {
        const trial = new Trial(await options.open());
        try {
          await body(trial);
        } finally {
          await trial.close();
        }
      });
    }
  });
}
