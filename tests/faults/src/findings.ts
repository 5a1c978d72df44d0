import { Finding } from './finding.ts';

/** How a run ended. `suite error`: the suite itself could not do what it had to, which says nothing about MySync, neither good nor bad. */
export type Outcome = 'passed' | 'failed' | 'suite error';

/**
 * What a run found about MySync, and what the suite itself could not do.
 *
 * 1. Only what is found about MySync makes a run fail (or catches a mutation).
 * 2. Nothing that is found after an error of the suite counts: it may be that error's doing. What was found before stays.
 */
export class Findings {
  readonly #complaints: string[] = [];
  readonly #suiteErrors: string[] = [];

  /** What speaks against MySync. */
  get complaints(): readonly string[] {
    return this.#complaints;
  }

  get suiteErrors(): readonly string[] {
    return this.#suiteErrors;
  }

  get outcome(): Outcome {
    if (this.#complaints.length > 0) return 'failed';
    return this.#suiteErrors.length > 0 ? 'suite error' : 'passed';
  }

  /** The checker, or a process that ended by itself, speaks against MySync. */
  complain(...texts: readonly string[]): void {
    if (this.#suiteErrors.length === 0) this.#complaints.push(...texts);
  }

  /** Something threw. */
  take(error: unknown): void {
    if (error instanceof Finding) this.complain(error.message);
    else this.#suiteErrors.push(textOf(error));
  }
}

/** An error with what caused it. */
export function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${textOf(error.cause)}`;
}
