/** For tests: the same stretch of the log as another library reads it. */
import ZongJi from '@vlasky/zongji';

interface ZongjiEvent {
  getTypeName(): string;
  readonly binlogName: string;
  readonly position: number | string;
  readonly query: string;
  readonly schema: string;
  readonly gtid: string;
  readonly gtidSet: string;
  readonly gtids: readonly { readonly gtid: string }[];
  readonly standalone: boolean;
  readonly preparedXa: boolean;
  readonly onePhase: boolean;
}

export interface SecondOpinionOptions {
  readonly port: number;
  readonly file: string;
  /** Of the statement that ends the stretch. */
  readonly lastStatement: string;
}

/** Rotations, GTIDs, statements and ends of transactions, one line each. */
export async function secondOpinion({ port, file, lastStatement }: SecondOpinionOptions): Promise<string[]> {
  const zongji = new ZongJi({ host: '127.0.0.1', port, user: 'mysync', password: 'mysync' } as never);
  const lines: string[] = [];
  await new Promise<void>((resolve, reject) => {
    zongji.on('error', reject);
    zongji.on('binlog', (event: unknown) => {
      const line = lineOf(event as ZongjiEvent);
      if (line !== undefined) lines.push(line);
      if (line?.endsWith(lastStatement)) resolve();
    });
    zongji.start({ serverId: 3_900_000_000 + Math.floor(Math.random() * 1e8), filename: file, position: 4 } as never);
  });
  const stopped = new Promise<void>((resolve) => zongji.once('stopped' as never, resolve));
  zongji.stop();
  await stopped;
  return lines;
}

function lineOf(event: ZongjiEvent): string | undefined {
  switch (event.getTypeName()) {
    case 'Rotate':
      return `rotate ${event.binlogName} ${Number(event.position)}`;
    case 'Query':
      return `query ${event.schema} ${event.query}`;
    case 'Gtid':
      return `gtid ${event.gtid}`;
    case 'AnonymousGtid':
      return 'gtid ';
    case 'MariadbGtid':
      return `mariadb-gtid ${event.gtid} ${event.standalone} ${event.preparedXa}`;
    case 'PreviousGtids':
      return `gtid-set ${event.gtidSet}`;
    case 'MariadbGtidList':
      return `gtid-set ${event.gtids.map((entry) => entry.gtid).join(',')}`;
    case 'Xid':
      return 'xid';
    case 'XaPrepare':
      return `xa-prepare ${event.onePhase}`;
    default:
      return undefined;
  }
}
