import type { ReaderStatus } from '@mysync/reader';
import type { WriterStatus } from '@mysync/writer';

/** What a running process serves at /status. */
export interface ProcessStatus {
  readonly version: string;
  readonly pid: number;
  readonly startedAt: string;
  readonly readers: readonly ReaderStatus[];
  readonly writers: readonly WriterStatus[];
}
