/**
 * XA transactions: the log holds their rows where they were prepared, and what became of them later, in a transaction of its own.
 * Here their events are held back until then, so that whoever reads the result sees ordinary transactions.
 *
 *     XA START ──► rows … ──► XA PREPARE ══► held ──► XA COMMIT:   XA START, rows, XID
 *                                  │            └──► XA ROLLBACK: nothing
 *                                  └─ one phase: the rows, then the commit
 *
 * 1. Rows take effect at XA COMMIT, under its name and in its place of the order; at XA ROLLBACK never.
 * 2. The place of reading moves over held events: they are passed on as events that say nothing.
 * 3. An XA COMMIT whose prepared rows are not here (they stand before the place that reading began at) is looked for in the
 *    older log. What is not found is an error, never an empty transaction.
 */
import { EVENT } from '../binlog/column-types.ts';
import { xidText } from '../binlog/control-events.ts';
import { type ControlEvent, EVENT_FLAG, type LogEvent } from '../binlog/log-event.ts';
import { EventStore, type HeldMemory } from './event-store.ts';

const NONE: ControlEvent = { kind: 'none' };
const START = /^\s*XA\s+(?:START|BEGIN)\b/i;
const OUTCOME = /^\s*XA\s+(COMMIT|ROLLBACK)\s+X'([0-9a-f]*)'(?:\s*,\s*X'([0-9a-f]*)'(?:\s*,\s*(\d+))?)?/i;
const END_OF_ALL = /^\s*(COMMIT|ROLLBACK)\s*$/i;

export interface XaHolderOptions {
  readonly memory: HeldMemory;
  /** Looks in the log before the place that reading began at. Omitted: what is not known is passed on as it is. */
  findPrepared?(xid: string): Promise<EventStore>;
}

export class XaHolder {
  readonly #options: XaHolderOptions;
  readonly #held = new Map<string, EventStore>();
  /** Of the XA transaction whose events are coming. */
  #group: EventStore | undefined;

  constructor(options: XaHolderOptions) {
    this.#options = options;
  }

  /** What to pass on for an event at that place, in order: undefined for the event itself. A promise only where the older log must be read. */
  process(event: LogEvent, file: string, offset: number): Iterable<LogEvent> | Promise<Iterable<LogEvent>> | undefined {
    const { control, type } = event;
    if (this.#group !== undefined && beginsAnew(control.kind, type)) this.#drop();
    if (this.#group !== undefined) return this.#inside(this.#group, event, offset);
    // MariaDB has no statement here: the GTID begins it
    if (control.kind === 'mariadb-gtid' && control.preparedXa) this.#begin(file);
    else if (control.kind === 'query' && isXa(control.statement)) {
      return this.#statement(event, control.statement, file);
    }
    return undefined;
  }

  /** The rows of a prepared transaction, which are the caller's from now on. */
  take(xid: string): EventStore | undefined {
    const store = this.#held.get(xid);
    this.#held.delete(xid);
    return store;
  }

  close(): void {
    this.#drop();
    for (const store of this.#held.values()) store.close();
    this.#held.clear();
  }

  #statement(
    event: LogEvent,
    statement: string,
    file: string,
  ): Iterable<LogEvent> | Promise<Iterable<LogEvent>> | undefined {
    if (START.test(statement)) {
      this.#begin(file);
      return undefined;
    }
    const outcome = OUTCOME.exec(statement);
    if (outcome === null) return undefined;
    const xid = xidText(Number(outcome[4] ?? 1), outcome[2] ?? '', outcome[3] ?? '');
    const store = this.take(xid);
    if (outcome[1]?.toUpperCase() === 'ROLLBACK') {
      store?.close();
      return undefined;
    }
    if (store !== undefined) return committed(store, event);
    return this.#options.findPrepared?.(xid).then((found) => committed(found, event));
  }

  #inside(group: EventStore, event: LogEvent, offset: number): Iterable<LogEvent> | undefined {
    const { control } = event;
    switch (control.kind) {
      case 'xa-prepare':
        this.#group = undefined;
        if (control.onePhase) return committed(group, event);
        this.#held.get(control.xid)?.close();
        this.#held.set(control.xid, group);
        return undefined;
      case 'xid':
        this.#group = undefined;
        return committed(group, event);
      case 'query':
        if (!END_OF_ALL.test(control.statement)) break;
        if (/commit/i.test(control.statement)) {
          this.#group = undefined;
          return committed(group, event);
        }
        this.#drop();
        return undefined;
      case 'heartbeat':
        return undefined;
      default:
    }
    group.add(event, offset);
    // what was taken out of another event moves nothing
    return event.place === undefined ? [{ ...event, type: EVENT.IGNORABLE, control: NONE }] : [];
  }

  #begin(file: string): void {
    this.#group = new EventStore(this.#options.memory, file);
  }

  #drop(): void {
    this.#group?.close();
    this.#group = undefined;
  }
}

/** Inside a transaction this means that the server crashed while it wrote it. */
function beginsAnew(kind: ControlEvent['kind'], type: number): boolean {
  if (kind === 'gtid' || kind === 'mariadb-gtid' || kind === 'rotate') return true;
  return type === EVENT.FORMAT_DESCRIPTION || type === EVENT.STOP;
}

function isXa(statement: string): boolean {
  return /^\s*XA\b/i.test(statement);
}

/** The held rows as a transaction that begins here and ends with the event. */
function* committed(store: EventStore, event: LogEvent): Generator<LogEvent> {
  yield {
    ...event,
    type: EVENT.QUERY,
    flags: event.flags | EVENT_FLAG.ARTIFICIAL,
    control: { kind: 'query', database: '', statement: 'XA START', bytes: null },
  };
  yield* store.drain();
  yield { ...event, control: { kind: 'xid' } };
}
