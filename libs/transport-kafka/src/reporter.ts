/** Log lines of one client. What fails again and again is a warning at first and every half minute, and debug in between. */
import { type Clock, systemClock } from '@mysync/core';
import type { KafkaLogEntry, KafkaObserver } from './options.ts';

const REPEAT_MS = 30_000;

export class Reporter {
  readonly #observer: KafkaObserver;
  readonly #fields: KafkaLogEntry['fields'];
  readonly #clock: Clock;
  #warnedAt = Number.NEGATIVE_INFINITY;
  #silenced = 0;

  constructor(observer: KafkaObserver, fields: KafkaLogEntry['fields'], clock: Clock = systemClock) {
    this.#observer = observer;
    this.#fields = fields;
    this.#clock = clock;
  }

  /** One of a series of failures. */
  trouble(message: string, more: KafkaLogEntry['fields'] = {}): void {
    const now = this.#clock.monotonic();
    if (now - this.#warnedAt < REPEAT_MS) {
      this.#silenced++;
      this.#log('debug', message, more);
      return;
    }
    this.#log('warn', message, this.#silenced === 0 ? more : { ...more, repeated: this.#silenced });
    this.#warnedAt = now;
    this.#silenced = 0;
  }

  /** The series is over: the next failure is a new one. */
  well(): void {
    if (this.#silenced > 0) this.#log('info', 'all is well again', { failures: this.#silenced + 1 });
    this.#warnedAt = Number.NEGATIVE_INFINITY;
    this.#silenced = 0;
  }

  /** Always a warning. */
  warn(message: string, more: KafkaLogEntry['fields'] = {}): void {
    this.#log('warn', message, more);
  }

  /** Records of another writer lie between our own batches. */
  foreign(place: { readonly topic: string; readonly partition: number }, count: number, offset: number): void {
    this.#observer.foreignRecords?.({ ...place, count, offset });
    this.warn(`${count} records of another writer lie before offset ${offset}`, { partition: place.partition });
  }

  #log(level: KafkaLogEntry['level'], message: string, more: KafkaLogEntry['fields']): void {
    this.#observer.log?.({ level, message, fields: { ...this.#fields, ...more } });
  }
}
