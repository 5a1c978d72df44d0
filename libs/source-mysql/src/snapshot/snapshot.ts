import { sourceErrors } from '../errors.ts';
import type { ResolvedOptions } from '../options.ts';
import type { Snapshot, SnapshotProgress } from '../port.ts';
import type { ServerSession } from '../server/session.ts';

export interface SnapshotOptions {
  readonly source: ResolvedOptions;
  openSession(): Promise<ServerSession>;
  onProgress(progress: SnapshotProgress): void;
  readonly signal: AbortSignal;
}

export function openSnapshot(_options: SnapshotOptions): Promise<Snapshot> {
  return Promise.reject(sourceErrors.SOURCE_SNAPSHOT_DENIED({ message: 'not built yet' }));
}
