/** How a process of MySync ended, from what it printed. */

/** What a process is told that another has taken the place of. */
const REPLACED: ReadonlySet<string> = new Set(['TRANSPORT_FENCED', 'CHECKPOINT_FENCED']);

/** The code of the error that it ended by; '' where it told none. */
export function endingCode(printed: string): string {
  // an error that ends a process begins a line with its code; all others are in lines of JSON
  return [...printed.matchAll(/^([A-Z][A-Z0-9_]+): /gm)].at(-1)?.[1] ?? '';
}

/** It ended since it was told that another has its place, and by nothing else. */
export function endedReplaced(printed: string): boolean {
  return REPLACED.has(endingCode(printed));
}

/** Lines that tell of an error. */
export function errorsTold(printed: string): readonly string[] {
  return printed.split('\n').filter((line) => /^\{"level":"(error|fatal)"|^[A-Z][A-Z0-9_]+: /.test(line));
}
