/** What the answer to a batch means for what happens next. */
import { CODE, codeName, isDenied } from './protocol/codes.ts';

export type ProduceVerdict =
  | { readonly kind: 'stored' }
  /** The numbers mean nothing to the broker any more: everything goes again under new ones. */
  | { readonly kind: 'renumber'; readonly why: string }
  /** The same bytes go again, in order. `why` is null where that is no news. */
  | { readonly kind: 'again'; readonly why: string | null }
  /** Another epoch holds: who, must be asked. */
  | { readonly kind: 'fenced' }
  | { readonly kind: 'too-large' }
  | { readonly kind: 'bad-record' }
  | { readonly kind: 'denied' };

/** `isFirst`: no batch of the partition that was sent before it is still open. */
export function produceVerdict(error: number, isFirst: boolean): ProduceVerdict {
  switch (error) {
    case 0:
      return { kind: 'stored' };
    case CODE.DUPLICATE_SEQUENCE_NUMBER:
      return { kind: 'renumber', why: OFFSET_FORGOTTEN };
    case CODE.OUT_OF_ORDER_SEQUENCE_NUMBER:
    case CODE.UNKNOWN_PRODUCER_ID:
    case CODE.INVALID_PRODUCER_ID_MAPPING:
      // Behind a batch that failed it is the consequence of that; of the first one it is the truth.
      return isFirst
        ? { kind: 'renumber', why: `the broker answers ${codeName(error)}` }
        : { kind: 'again', why: null };
    case CODE.INVALID_PRODUCER_EPOCH:
    case CODE.PRODUCER_FENCED:
      return { kind: 'fenced' };
    case CODE.MESSAGE_TOO_LARGE:
    case CODE.RECORD_LIST_TOO_LARGE:
      return { kind: 'too-large' };
    case CODE.INVALID_RECORD:
    case CODE.INVALID_TIMESTAMP:
    case CODE.UNSUPPORTED_COMPRESSION_TYPE:
      return { kind: 'bad-record' };
    default:
      if (isDenied(error)) return { kind: 'denied' };
      return { kind: 'again', why: `the broker answers ${codeName(error)}: sending again` };
  }
}

export const OFFSET_FORGOTTEN = 'a batch is stored, but the broker does not know its offset any more';
