import { sinkErrors } from '@mysync/sink';
import type { Argument } from './connection.ts';

/** UTF-8 takes at most so many bytes for each of a string's characters. */
const MOST_BYTES = 3;

/** How long a row's arguments are together, roughly. Throws `SINK_VALUE_REFUSED` when one is longer than the server takes. */
export function argumentLengths(args: readonly Argument[], start: number, maxBytes: number): number {
  let sum = 0;
  for (let at = start; at < args.length; at++) {
    const arg = args[at] as Argument;
    sum += arg.length;
    if (arg.length * MOST_BYTES <= maxBytes) continue;
    const bytes = typeof arg === 'string' ? Buffer.byteLength(arg) : arg.length;
    if (bytes <= maxBytes) continue;
    throw sinkErrors.SINK_VALUE_REFUSED({
      message: `a value of ${bytes} bytes is longer than Redis takes (${maxBytes})`,
      remedy: 'Exclude the large column, or raise proto-max-bulk-len of Redis (CONFIG SET).',
    });
  }
  return sum;
}
