/** Whether a figure that was taken every few seconds stays where it is, or creeps up. Pure. */

/** One look: seconds since the beginning, and the figure. */
export interface Sample {
  readonly at: number;
  readonly value: number;
}

/** What still counts as flat: growth over the samples, by the larger of the two. */
export interface Bound {
  readonly absolute: number;
  /** Part of the median. */
  readonly relative: number;
}

export interface SlopeVerdict {
  readonly median: number;
  readonly most: number;
  /** Slope of the samples times their length in time: what they grew by, were it a straight line. */
  readonly growth: number;
  readonly allowed: number;
  readonly flat: boolean;
}

/** More than that are thinned: pairs grow with the square. */
const MOST_SAMPLES = 300;

/**
 * The slope is the median of the slopes of all pairs (Theil and Sen), in units per second: up to 29 % of the samples may be anything at all, spikes of a
 * fault or of a garbage collection, without moving it far. 0 where there are not two of them.
 */
export function medianSlope(samples: readonly Sample[]): number {
  const few = thinned(samples);
  const slopes: number[] = [];
  for (let i = 0; i < few.length; i += 1) {
    for (let j = i + 1; j < few.length; j += 1) {
      const [a, b] = [few[i] as Sample, few[j] as Sample];
      if (b.at > a.at) slopes.push((b.value - a.value) / (b.at - a.at));
    }
  }
  return median(slopes);
}

export function judgeSlope(samples: readonly Sample[], { absolute, relative }: Bound): SlopeVerdict {
  const values = samples.map(({ value }) => value);
  const middle = median(values);
  const length = (samples.at(-1)?.at ?? 0) - (samples[0]?.at ?? 0);
  const growth = medianSlope(samples) * length;
  const allowed = Math.max(absolute, relative * middle);
  return { median: middle, most: Math.max(0, ...values), growth, allowed, flat: growth <= allowed };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  const upper = sorted[half] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? 0) + upper) / 2;
}

/** Medians of neighbours, so that a spike does not stand for all that is left out. */
function thinned(samples: readonly Sample[]): readonly Sample[] {
  if (samples.length <= MOST_SAMPLES) return samples;
  const size = Math.ceil(samples.length / MOST_SAMPLES);
  const few: Sample[] = [];
  for (let from = 0; from < samples.length; from += size) {
    const group = samples.slice(from, from + size);
    few.push({ at: median(group.map(({ at }) => at)), value: median(group.map(({ value }) => value)) });
  }
  return few;
}
