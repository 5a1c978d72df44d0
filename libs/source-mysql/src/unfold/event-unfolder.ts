/**
 * Between connection and transactions: events that hold other events, or that mean something only later, become plain ones.
 *
 *     compressed transaction ──► its events ──┐
 *     other events ───────────────────────────┴─► XA: held until the outcome ──► partial JSON made whole ──►
 *
 * What comes out has the places and the order in which it takes effect.
 */
import { type BinlogPosition, formatBinlogPosition, isMysyncError } from '@mysync/core';
import { EVENT } from '../binlog/column-types.ts';
import { isMadeUp, type LogEvent } from '../binlog/log-event.ts';
import { sourceErrors } from '../errors.ts';
import { LogCursor } from '../stream/log-position.ts';
import type { XaHolder } from '../xa/xa-holder.ts';
import type { PartialUpdates } from './partial-updates.ts';
import { unfoldPayload } from './transaction-payload.ts';

export interface EventUnfolderOptions {
  readonly from: BinlogPosition;
  readonly xa: XaHolder;
  /** undefined: partial updates stay what they are. */
  readonly partial?: PartialUpdates | undefined;
}

export class EventUnfolder {
  readonly #cursor: LogCursor;
  readonly #xa: XaHolder;
  readonly #partial: PartialUpdates | undefined;

  constructor(options: EventUnfolderOptions) {
    this.#cursor = new LogCursor(options.from.file, options.from.offset);
    this.#xa = options.xa;
    this.#partial = options.partial;
  }

  /** Behind the last event. */
  get position(): BinlogPosition {
    return { file: this.#cursor.file, offset: this.#cursor.offset };
  }

  /** What the event stands for, in order; undefined for itself alone, which is the usual case. */
  unfold(event: LogEvent): Iterable<LogEvent> | AsyncIterable<LogEvent> | undefined {
    const at = this.#pass(event);
    if (event.type === EVENT.TRANSACTION_PAYLOAD) return this.#payload(event, at);
    const result = this.#xa.process(event, this.#cursor.file, at);
    if (result !== undefined) return this.#each(result);
    if (this.#partial?.concerns(event) !== true) return undefined;
    const whole = this.#whole(event, { file: this.#cursor.file, offset: at });
    return whole === event ? undefined : [whole];
  }

  async *#each(events: Iterable<LogEvent> | Promise<Iterable<LogEvent>>): AsyncGenerator<LogEvent> {
    for (const event of await events) yield this.#whole(event, event.place);
  }

  #whole(event: LogEvent, place: BinlogPosition | undefined): LogEvent {
    return this.#partial?.process(event, () => formatBinlogPosition(place ?? this.position)) ?? event;
  }

  async *#payload(event: LogEvent, at: number): AsyncGenerator<LogEvent> {
    const place = { file: this.#cursor.file, offset: at };
    // first the place of reading moves over the whole
    yield event;
    const inner = unfoldPayload(event, place);
    for (;;) {
      const next = this.#next(inner, place);
      if (next === undefined) return;
      const result = this.#xa.process(next, place.file, place.offset);
      if (result === undefined) yield this.#whole(next, place);
      else yield* this.#each(result);
    }
  }

  #next(inner: Iterator<LogEvent>, place: BinlogPosition): LogEvent | undefined {
    try {
      const next = inner.next();
      return next.done === true ? undefined : next.value;
    } catch (error) {
      if (isMysyncError(error)) throw error;
      throw sourceErrors.SOURCE_EVENT_UNREADABLE({
        message: 'a compressed transaction cannot be read',
        where: { position: formatBinlogPosition(place) },
        cause: error,
      });
    }
  }

  /** Where the event begins. */
  #pass(event: LogEvent): number {
    const { control } = event;
    if (control.kind === 'rotate') {
      if (control.file !== this.#cursor.file) this.#cursor.moveTo(control.file, control.offset);
      return this.#cursor.offset;
    }
    if (isMadeUp(event)) return this.#cursor.offset;
    try {
      return this.#cursor.pass(event.length, event.nextOffset);
    } catch (cause) {
      throw sourceErrors.SOURCE_EVENT_UNREADABLE({
        message: 'the place of an event cannot be right',
        where: { position: formatBinlogPosition(this.position) },
        cause,
      });
    }
  }
}
