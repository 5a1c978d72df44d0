/** The source alone: the binlog over the wire to encoded messages, which are thrown away. */
import { parseBinlogPosition } from '@mysync/core';
import { createMysqlSource } from '@mysync/source-mysql';
import { childAnswer, childInput } from '../child.ts';

export interface DecodeInput {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly start: string;
  readonly rows: number;
}

const { host, port, user, password, database, start, rows } = childInput<DecodeInput>();
const source = createMysqlSource({
  name: 'bench',
  hosts: [{ host, port }],
  user,
  password,
  captures: (table) => table.database === database,
  tableRule: () => ({ noKey: 'row-hash' }),
});
const stop = new AbortController();
let count = 0;
let bytes = 0;
for await (const items of source.stream({
  from: { ...parseBinlogPosition(start), gtidSet: '' },
  signal: stop.signal,
})) {
  for (const item of items) {
    if (item.kind !== 'row') continue;
    count += 1;
    bytes += item.key.length + item.payload.length;
  }
  if (count >= rows) break;
}
await childAnswer({ rows: count, bytes });
await source.close();
