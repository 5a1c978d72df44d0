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
  /** When the first quarter of the rows was through: what is compiled while it runs is compiled by then. */
  readonly warmRowsPerCpuSecond?: number;
  /** CPU seconds of the Redis server meanwhile. */
  readonly redisCpuSeconds?: number;
  /** Milliseconds from the answer to a COMMIT until the row can be read from the sink. */
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  /** The same from the sending of the statement: with the time that the source takes for it. */
  readonly sentP50Ms?: number;
  readonly sentP99Ms?: number;
}

/** What was not measured. */
export interface Skipped {
  readonly name: string;
  readonly why: string;
}

/** Bytes of an average message, its key included. */
export interface MessageBytes {
  readonly mysync: number;
  readonly debezium: number;
  /** With the schema in each message, as Debezium does unless it is told otherwise. */
  readonly debeziumWithSchema: number;
}

/** A measurement's speed as a multiple of another's. */
export interface Ratio {
  readonly name: string;
  readonly baseline: string;
  readonly perCpuSecond: number;
  /** The same without the start of the process; that of a bare Redis client is never counted. */
  readonly perCpuSecondRunning: number;
  /** The same after the first quarter. */
  readonly perCpuSecondWarm?: number;
  readonly perWallSecond: number;
  /** What is asked for. */
  readonly goal?: number;
}

export function ratioOf(result: Result, baseline: Result, goal?: number): Ratio {
  const share = (seconds: (of: Result) => number): number =>
    round(result.rows / seconds(result) / (baseline.rows / seconds(baseline)), 2);
  const { warmRowsPerCpuSecond: warm } = result;
  const { warmRowsPerCpuSecond: baselineWarm } = baseline;
  return {
    name: result.name,
    baseline: baseline.name,
    perCpuSecond: share((of) => of.cpuSeconds),
    perCpuSecondRunning: share((of) => of.cpuSeconds - (of.startCpuSeconds ?? 0)),
    ...(warm === undefined || baselineWarm === undefined ? {} : { perCpuSecondWarm: round(warm / baselineWarm) }),
    perWallSecond: share((of) => of.wallSeconds),
    ...(goal === undefined ? {} : { goal }),
  };
}

export function round(value: number, digits = 2): number {
  const factor = 10 ** digits;
  return Math.round(value * factor) / factor;
}

export function percentile(sorted: ArrayLike<number>, fraction: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? 0;
}

export function median(values: readonly number[]): number {
  return percentile(
    [...values].sort((a, b) => a - b),
    0.5,
  );
}
