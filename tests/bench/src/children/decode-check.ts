/**
 * What the messages of a range say, read by the decoder that writers use: whether the reader that is measured, which does not look into its
 * messages, made the right ones; and how large other formats would be.
 */
import { createMysqlSource } from '@mysync/source-mysql';
import { decodeKey, MessageDecoder } from '@mysync/wire';
import { childAnswer, childInput } from '../child.ts';
import { debeziumBytes } from '../debezium-json.ts';
import type { LogRange } from '../log-client.ts';
import { isMeasured, SUMMED } from '../table.ts';

export interface DecodedLog {
  readonly rows: number;
  readonly sum: number;
  /** Of keys and messages. */
  readonly bytes: number;
  /** Of one message, on average. */
  readonly debeziumBytes: number;
  readonly debeziumWithSchemaBytes: number;
}

/** One row of so many is written as other formats have it. */
const SAMPLED = 16;

const { host, port, user, password, file, offset, rows } = childInput<LogRange>();
const source = createMysqlSource({
  name: 'bench',
  hosts: [{ host, port }],
  user,
  password,
  captures: isMeasured,
  tableRule: () => ({ noKey: 'row-hash' }),
});
const decoder = new MessageDecoder();
const seen = { rows: 0, sum: 0, bytes: 0, samples: 0, bare: 0, withSchema: 0 };
const stop = new AbortController();
for await (const items of source.stream({ from: { file, offset, gtidSet: '' }, signal: stop.signal })) {
  for (const item of items) {
    if (item.kind !== 'row') continue;
    const message = decoder.decode(item.payload);
    if (message.operation !== 'insert') throw new Error(`a row is ${message.operation}`);
    seen.sum += Number(message.after?.[message.schema.columns.findIndex((column) => column.name === SUMMED)]);
    seen.bytes += item.bytes;
    if (seen.rows % SAMPLED === 0) {
      const key = decodeKey(item.key);
      if (key.kind !== 'row') throw new Error(`the key of a row is that of ${key.kind}`);
      const { bare, withSchema } = debeziumBytes(message, key.row);
      seen.samples += 1;
      seen.bare += bare;
      seen.withSchema += withSchema;
    }
    seen.rows += 1;
    item.giveBack();
  }
  if (seen.rows >= rows) break;
}
const answer: DecodedLog = {
  rows: seen.rows,
  sum: seen.sum,
  bytes: seen.bytes,
  debeziumBytes: Math.round(seen.bare / seen.samples),
  debeziumWithSchemaBytes: Math.round(seen.withSchema / seen.samples),
};
await childAnswer(answer);
await source.close();
