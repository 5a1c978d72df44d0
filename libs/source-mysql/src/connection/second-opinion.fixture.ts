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

type ZongjiValues = Readonly<Record<string, unknown>>;

interface ZongjiRows extends ZongjiEvent {
  readonly tableId: number;
  readonly tableMap: Readonly<Record<number, { readonly parentSchema: string; readonly tableName: string }>>;
  readonly rows: readonly (ZongjiValues & { readonly before?: ZongjiValues; readonly after?: ZongjiValues })[];
}

export interface SecondOpinionOptions {
  readonly port: number;
  readonly file: string;
  /** Default: the file's beginning. */
  readonly offset?: number;
  /** Of the statement that ends the stretch. */
  readonly lastStatement: string;
}

/** A row's change as the other library has it. */
export interface OtherChange {
  readonly table: string;
  readonly before: ZongjiValues | null;
  readonly after: ZongjiValues | null;
}

/** Rotations, GTIDs, statements and ends of transactions, one line each. */
export async function secondOpinion(options: SecondOpinionOptions): Promise<string[]> {
  const lines: string[] = [];
  await read(options, (event) => {
    const line = lineOf(event);
    if (line !== undefined) lines.push(line);
  });
  return lines;
}

/** The changes of rows in a database; dates and times as text. */
export async function secondOpinionOfRows(options: SecondOpinionOptions, database: string): Promise<OtherChange[]> {
  const changes: OtherChange[] = [];
  await read(options, (event) => {
    const type = event.getTypeName();
    if (type !== 'WriteRows' && type !== 'UpdateRows' && type !== 'DeleteRows') return;
    const { tableMap, tableId, rows } = event as ZongjiRows;
    const table = tableMap[tableId];
    if (table?.parentSchema !== database) return;
    for (const row of rows) {
      const { tableName } = table;
      if (type === 'WriteRows') changes.push({ table: tableName, before: null, after: row });
      else if (type === 'DeleteRows') changes.push({ table: tableName, before: row, after: null });
      else changes.push({ table: tableName, before: row.before ?? null, after: row.after ?? null });
    }
  });
  return changes;
}

async function read(
  { port, file, offset = 4, lastStatement }: SecondOpinionOptions,
  take: (event: ZongjiEvent) => void,
): Promise<void> {
  const connection = { host: '127.0.0.1', port, user: 'mysync', password: 'mysync', dateStrings: true };
  const zongji = new ZongJi(connection as never);
  await new Promise<void>((resolve, reject) => {
    zongji.on('error', reject);
    zongji.on('binlog', (given: unknown) => {
      const event = given as ZongjiEvent;
      take(event);
      if (event.getTypeName() === 'Query' && event.query.endsWith(lastStatement)) resolve();
    });
    const serverId = 3_900_000_000 + Math.floor(Math.random() * 1e8);
    zongji.start({ serverId, filename: file, position: offset } as never);
  });
  const stopped = new Promise<void>((resolve) => zongji.once('stopped' as never, resolve));
  zongji.stop();
  await stopped;
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
