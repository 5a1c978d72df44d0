import type { SnapshotState } from '@mysync/checkpoint';
import type { SourcePosition } from '@mysync/core';
import type { CheckpointTracker, TransactionEnd } from '@mysync/flow';
import type { ChangeRouter } from './change-router.ts';

export interface StandingOptions {
  readonly tracker: CheckpointTracker;
  readonly router: ChangeRouter;
  readonly snapshotState: SnapshotState['state'];
  readonly timeMicros: number;
}

/** Where a started reader stands in its source. */
export class Standing {
  readonly #tracker: CheckpointTracker;
  readonly #router: ChangeRouter;
  phase: 'starting' | 'snapshot' | 'streaming' = 'starting';
  /** The newest place between transactions; null before the first. */
  position: SourcePosition | null = null;
  /** Between a transaction's begin and its commit, or amid the rows of a view. */
  inTransaction = false;
  /** Commit time of what was read last. */
  timeMicros: number;
  snapshotState: SnapshotState['state'];

  constructor(options: StandingOptions) {
    this.#tracker = options.tracker;
    this.#router = options.router;
    this.snapshotState = options.snapshotState;
    this.timeMicros = options.timeMicros;
  }

  /** Everything up to the place has been put, changes among it: the checkpoint goes there once all of it is acked. */
  settle(position: SourcePosition): void {
    this.#tracker.commit(this.#endAt(position));
  }

  /** Nothing was captured on the way to the place. */
  pass(position: SourcePosition): void {
    this.#tracker.keepalive(this.#endAt(position));
  }

  /** Closes what was put beside the source (heartbeats), so that an idle source's checkpoint moves. */
  settleIdle(): void {
    if (this.inTransaction || this.position === null) return;
    this.#tracker.keepalive({ position: this.position, transactionCounter: this.#router.transactionCounter });
  }

  #endAt(position: SourcePosition): TransactionEnd {
    this.position = position;
    this.#router.passTo(position);
    return { position, transactionCounter: this.#router.transactionCounter };
  }
}
