/** What `mysync status` shows of a partition. */
export interface PartitionStatus {
  readonly partition: number;
  readonly state: 'starting' | 'running' | 'retrying' | 'halted' | 'ended';
  readonly nextOffset: number;
  readonly endOffset: number;
  readonly lagSeconds: number;
  /** How long the sink, or the log, has not answered; 0 when all is well. */
  readonly stalledSeconds: number;
  /** Keys that are set aside. */
  readonly parkedKeys: number;
  /** The same by table. */
  readonly parkedByTable: Readonly<Record<string, number>>;
  /** Since when rows that are gone from the source may stand in the sink, in milliseconds since 1970; null when none do. */
  readonly deletionsLostSinceMs: number | null;
  readonly detail: string;
}
