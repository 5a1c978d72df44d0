/**
 * One suite for every adapter of the transport port: each test holds one line of the contracts in `port.ts`.
 *
 * An adapter calls `transportConformance` in a test file of its own; it registers node:test tests. What the suite expects
 * comes from the port alone, so a difference between adapters is a defect of one of them, or of the port's wording.
 */

import { groupConformance } from './conformance-group.ts';
import { type ConformanceOptions, registrar } from './conformance-kit.ts';
import { publishConformance } from './conformance-publish.ts';
import { readConformance } from './conformance-read.ts';
import { topicConformance } from './conformance-topic.ts';

export type { ConformanceOptions } from './conformance-kit.ts';

export function transportConformance(options: ConformanceOptions): void {
  const it = registrar(options);
  topicConformance(it, options);
  publishConformance(it, options.tooLargeRecordBytes);
  readConformance(it, options);
  groupConformance(it, options);
}
