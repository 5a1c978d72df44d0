import { wireErrors } from './errors.ts';
import { KEY_KINDS, KEY_VERSION, type KeyKind } from './key-format.ts';

/** The kind of a record, from its key's first two bytes alone. Throws WIRE_KEY_INVALID for a key that is not ours. */
export function keyKind(key: Uint8Array): KeyKind {
  const kind = key[0] === KEY_VERSION ? KEY_KINDS[key[1] ?? KEY_KINDS.length] : undefined;
  if (kind === undefined) {
    throw wireErrors.WIRE_KEY_INVALID({ message: 'the record key is not one of MySync' });
  }
  return kind;
}
