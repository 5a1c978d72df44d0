/** The other reader for Node, with its usual options: rows as objects, nothing encoded. */
import ZongJi from '@vlasky/zongji';
import { clientRange, Stages } from '../log-client.ts';
import { DATABASE, JSON_DATABASE, SINGLES_DATABASE, TABLE } from '../table.ts';

interface RowsEvent {
  readonly rows?: readonly { readonly tenant: number }[];
}

const { host, port, user, password, file, offset, rows } = clientRange();
const stages = new Stages(rows);
const zongji = new ZongJi({ host, port, user, password } as never);
let count = 0;
let sum = 0;
await new Promise<void>((resolve, reject) => {
  zongji.on('error', reject);
  zongji.on('binlog', (event: unknown) => {
    const changed = (event as RowsEvent).rows;
    if (changed === undefined || count >= rows) return;
    for (const row of changed) sum += row.tenant;
    count += changed.length;
    if (stages.reached(count, sum, 0)) resolve();
  });
  zongji.start({
    serverId: 3_900_000_003,
    filename: file,
    position: offset,
    includeEvents: ['rotate', 'tablemap', 'writerows', 'updaterows', 'deleterows'],
    includeSchema: { [DATABASE]: [TABLE], [JSON_DATABASE]: [TABLE], [SINGLES_DATABASE]: [TABLE] },
  } as never);
});
await stages.measured();
process.exit(0);
