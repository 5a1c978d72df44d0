import type { CheckpointJudge } from './checkpoint-judge.ts';
import { LogAudit } from './log-audit.ts';
import type { LogEye } from './log-eye.ts';

/** How far a partition of the log was read: up to `read` of `end`. */
export interface PartRead {
  readonly end: number;
  readonly read: number;
}

export interface WholeLog {
  /** What it says of those who wrote it. */
  readonly complaints: readonly string[];
  readonly parts: readonly PartRead[];
}

export interface WholeLogOptions {
  /** Records of strangers, by partition and offset, which are passed over. */
  readonly strangers: ReadonlySet<string>;
  /** Records may have been removed: their numbers need not follow one another. */
  readonly compacted: boolean;
  /** Is shown every message. */
  readonly checkpoints: CheckpointJudge;
}

/** Reads the log from its beginning to where it ends now. */
export async function readWholeLog(log: LogEye, options: WholeLogOptions): Promise<WholeLog> {
  const { strangers, compacted, checkpoints } = options;
  const read: number[] = [];
  const audits: LogAudit[] = [];
  const ends = await log.read(({ partition, offset, message }) => {
    read[partition] = offset + 1;
    if (strangers.has(`${partition}:${offset}`)) return;
    checkpoints.offer(partition, offset, message);
    if (compacted) return;
    const audit = audits[partition] ?? new LogAudit();
    audits[partition] = audit;
    audit.offer(`partition ${partition}, offset ${offset}`, message);
  });
  return {
    complaints: audits.flatMap((audit) => audit.complaints),
    parts: ends.map((end, partition) => ({ end, read: read[partition] ?? 0 })),
  };
}
