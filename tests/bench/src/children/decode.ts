/** The source alone: the binlog over the wire to encoded messages, which are thrown away. */
import { createMysqlSource } from '@mysync/source-mysql';
import { clientRange, Stages } from '../log-client.ts';
import { isMeasured } from '../table.ts';

const { host, port, user, password, file, offset, rows } = clientRange();
const stages = new Stages(rows);
const source = createMysqlSource({
  name: 'bench',
  hosts: [{ host, port }],
  user,
  password,
  captures: isMeasured,
  tableRule: () => ({ noKey: 'row-hash' }),
});
const stop = new AbortController();
let count = 0;
let bytes = 0;
for await (const items of source.stream({ from: { file, offset, gtidSet: '' }, signal: stop.signal })) {
  for (const item of items) {
    if (item.kind !== 'row') continue;
    count += 1;
    bytes += item.bytes;
    item.giveBack();
  }
  if (stages.reached(count, 0, bytes)) break;
}
await stages.measured();
await source.close();
