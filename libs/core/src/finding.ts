/** What a check found: printed by `mysync check`, and a reason to refuse the start when it is an error. */
export interface Finding {
  readonly level: 'ok' | 'warning' | 'error';
  /** Stable code, the same as that of the error a start would raise. */
  readonly code: string;
  /** What was looked at and found. */
  readonly message: string;
  /** The exact statement or setting that mends it; '' when all is well. */
  readonly remedy: string;
}
