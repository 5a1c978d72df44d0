/** One measurement. The five first fields are what `--json` promises; the others are there where they mean something. */
export interface Result {
  readonly name: string;
  readonly rows: number;
  readonly cpuSeconds: number;
  readonly wallSeconds: number;
  /** The most that the process ever had resident. */
  readonly rssMb: number;
  /** Part of `cpuSeconds` that went by before the process had started its work. */
  readonly startCpuSeconds?: number;
  /** CPU seconds of the Redis server meanwhile. */
  readonly redisCpuSeconds?: number;
  /** Milliseconds from the answer to a COMMIT until the row can be read from the sink. */
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  /** The same from the sending of the statement: with the time that the source takes for it. */
  readonly sentP50Ms?: number;
  readonly sentP99Ms?: number;
}

/** How much of a bare client's speed a measurement reaches. */
export interface Ratio {
  readonly name: string;
  readonly baseline: string;
  readonly perCpuSecond: number;
  /** The same without the start of the process; the bare client's start is never counted. */
  readonly perCpuSecondRunning: number;
  readonly perWallSecond: number;
}

export function ratioOf(result: Result, baseline: Result): Ratio {
  const share = (seconds: number, bareSeconds: number): number =>
    round(result.rows / seconds / (baseline.rows / bareSeconds), 2);
  const { cpuSeconds, wallSeconds, startCpuSeconds = 0 } = result;
  return {
    name: result.name,
    baseline: baseline.name,
    perCpuSecond: share(cpuSeconds, baseline.cpuSeconds),
    perCpuSecondRunning: share(cpuSeconds - startCpuSeconds, baseline.cpuSeconds),
    perWallSecond: share(wallSeconds, baseline.wallSeconds),
  };
}

export function round(value: number, digits = 2): number {
  const factor = 10 ** digits;
  return Math.round(value * factor) / factor;
}

export function percentile(sorted: ArrayLike<number>, fraction: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? 0;
}
