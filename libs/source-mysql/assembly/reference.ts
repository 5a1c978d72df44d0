/** The way round over JavaScript values, for what is rare. */
import { COLUMN_INDEX, STATE_AT } from '../src/transcribe/layout';
import { reference } from './host';
import { at, moveTo } from './source';

/** The value that begins at `from`, again. */
export function byReference(column: u32, from: usize, out: usize): usize {
  const next = reference(column, from, out);
  moveTo(<usize>load<u32>(STATE_AT));
  return next;
}

export function walkReference(column: usize, out: usize): usize {
  return byReference(load<u32>(column, COLUMN_INDEX), at, out);
}
