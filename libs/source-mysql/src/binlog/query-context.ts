/**
 * What a Query event says of the session that ran its statement. Layout: MySQL, libs/mysql/binlog/event/statement_events.h, class
 * Query_event, status variables; those that we ask for come first in both flavours.
 */
import { ByteReader } from './byte-reader.ts';

export interface QueryContext {
  /** 0 when the event does not tell. */
  readonly sqlMode: number;
  /** Collation id of character_set_client; 0 when the event does not tell. */
  readonly clientCollation: number;
}

const VARIABLE = {
  FLAGS: 0,
  SQL_MODE: 1,
  CATALOG: 2,
  AUTO_INCREMENT: 3,
  CHARSET: 4,
  TIME_ZONE: 5,
  CATALOG_NZ: 6,
} as const;

/** The event's body is `buffer[start, end)`. Reading stops at the first variable that is not known: all that is asked for stands before. */
export function readQueryContext(buffer: Buffer, start: number, end: number): QueryContext {
  const reader = new ByteReader(buffer, start, end);
  reader.skip(8 + 1 + 2);
  const bytes = reader.uint(2);
  const from = reader.at;
  reader.skip(bytes);
  const variables = new ByteReader(buffer, from, reader.at);
  let sqlMode = 0;
  let clientCollation = 0;
  while (variables.left > 0) {
    switch (variables.uint(1)) {
      case VARIABLE.FLAGS:
        variables.skip(4);
        break;
      case VARIABLE.SQL_MODE:
        sqlMode = variables.uint64();
        break;
      case VARIABLE.CATALOG:
        variables.skip(variables.uint(1) + 1);
        break;
      case VARIABLE.AUTO_INCREMENT:
        variables.skip(4);
        break;
      case VARIABLE.CHARSET:
        clientCollation = variables.uint(2);
        return { sqlMode, clientCollation };
      case VARIABLE.TIME_ZONE:
      case VARIABLE.CATALOG_NZ:
        variables.skip(variables.uint(1));
        break;
      default:
        return { sqlMode, clientCollation };
    }
  }
  return { sqlMode, clientCollation };
}
