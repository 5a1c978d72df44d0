import type { MysyncError } from '@mysync/core';
import { transportErrors } from '@mysync/transport';

/**
 * What the cluster has let this process do so far. A denial of what was never allowed is most often a typing error or a missing right, and
 * final; one of what was allowed before may pass, and is tried again (docs/adr/0211).
 */
export class Admission {
  readonly #given = new Set<string>();

  given(right: string): void {
    this.#given.add(right);
  }

  /** The error of a denial; `right` as `given` was told of it. */
  denied(right: string, message: string, where: Readonly<Record<string, string | number>>): MysyncError {
    return this.#given.has(right)
      ? transportErrors.TRANSPORT_ACCESS_LOST({ message, where })
      : transportErrors.TRANSPORT_DENIED({ message, where });
  }
}

export const LOG_IN = 'log in';

export function writing(topic: string): string {
  return `write ${topic}`;
}

export function belonging(group: string): string {
  return `group ${group}`;
}
