import type { Bench, TransportKind } from '../bench.ts';

const TOPICS: readonly (readonly [TransportKind, number])[] = [
  ['log', 4],
  ['kafka', 1],
  ['kafka', 4],
];

export async function publishSuite(bench: Bench): Promise<void> {
  for (const [kind, partitions] of TOPICS) {
    if (!bench.wants(`publish-${kind}-${partitions}`)) continue;
    const { measured } = await bench.filled(kind, partitions);
    bench.add(measured);
  }
}
