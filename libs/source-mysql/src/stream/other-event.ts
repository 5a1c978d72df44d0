import { EVENT } from '../binlog/column-types.ts';
import { EVENT_FLAG, type LogEvent } from '../binlog/log-event.ts';

/**
 * What an event means that neither holds rows nor begins or ends a transaction.
 * `heartbeat`: the server has nothing newer · `between`: stands between transactions · `format`: of the file that follows ·
 * `nothing`: holds no change · `partial-update`: rows of a JSON column's parts · `incident`: the server says that changes are missing from its log ·
 * `unknown`: nobody says that it may be left out.
 */
export type OtherEvent = 'heartbeat' | 'between' | 'format' | 'nothing' | 'partial-update' | 'incident' | 'unknown';

export function readOtherEvent({ type, flags }: LogEvent): OtherEvent {
  switch (type) {
    case EVENT.HEARTBEAT:
    case EVENT.HEARTBEAT_V2:
      return 'heartbeat';
    case EVENT.STOP:
    case EVENT.BINLOG_CHECKPOINT:
      return 'between';
    case EVENT.FORMAT_DESCRIPTION:
      return 'format';
    case EVENT.APPEND_BLOCK: // pieces of a file: the statement that loads them comes by itself
    case EVENT.BEGIN_LOAD_QUERY:
    case EVENT.DELETE_FILE:
    case EVENT.INTVAR:
    case EVENT.RAND:
    case EVENT.USER_VAR:
    case EVENT.IGNORABLE:
    case EVENT.ROWS_QUERY:
    case EVENT.TRANSACTION_CONTEXT:
    case EVENT.VIEW_CHANGE:
    case EVENT.ANNOTATE_ROWS:
    case EVENT.START_ENCRYPTION:
    case EVENT.TRANSACTION_PAYLOAD: // what is in it comes by itself
      return 'nothing';
    case EVENT.PARTIAL_UPDATE_ROWS:
      return 'partial-update';
    case EVENT.INCIDENT:
      return 'incident';
    default:
      return (flags & EVENT_FLAG.IGNORABLE) !== 0 ? 'nothing' : 'unknown';
  }
}
