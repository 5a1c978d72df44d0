/** A look at the log between reader and writers, without MySync's code. */

/** One record, as far as the suite looks at it. */
export interface LoggedMessage {
  readonly partition: number;
  readonly offset: number;
  readonly key: Uint8Array;
  /** Its message: the value, or the header of a tombstone. */
  readonly message: Uint8Array;
  readonly tombstone: boolean;
}

export interface LogEye {
  /** Every message of the log, each partition in order of its offsets; gives the next offset of each partition, up to which it was read. */
  read(onMessage: (message: LoggedMessage) => void): Promise<readonly number[]>;
  /** Next offset of each partition. */
  ends(): Promise<readonly number[]>;
  /** How far compaction has come; empty where that cannot be seen. */
  cleaned(): Promise<readonly number[]>;
  /** Committed offset of each partition; -1: none. */
  committed(group: string): Promise<readonly number[]>;
  /** The newest value of a key in another topic beside the log, which has one partition; null: there is none. Of what Kafka holds, as far as it was heard of. */
  newest(topic: string, key: string): Promise<Buffer | null>;
  close(): Promise<void>;
}
