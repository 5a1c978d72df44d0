/**
 * Keeps a producer's name alive at its coordinator, and asks there before sending after a long silence (docs/adr/0204).
 *
 * 1. Coordinators forget a name that nobody asked about for a time (7 days by default). A predecessor that wakes later and asks
 *    with its own numbers would then be taken for a new producer. So the holder asks every `everyMs`; that raises its epoch.
 * 2. Partitions forget a producer id sooner (a day without a batch): then whoever wakes is stored, whatever its epoch. So who has
 *    heard nothing for a sixth of `everyMs` sends nothing before the coordinator has said that it still holds the name.
 * 3. One question at a time, repeated until it is answered. What became of the numbers meanwhile makes the answer void.
 */
import { type Clock, causeText, isMysyncError, systemClock } from '@mysync/core';
import { patiently } from './patience.ts';
import type { ProducerNumbers } from './protocol/init-producer-id.ts';

/** Of the time between two renewals: after a silence of that length a reader asks before it sends. */
export const SILENCE_PART = 6;
const PAUSE_MS = 10_000;

export interface NameRenewalOptions {
  readonly everyMs: number;
  readonly signal: AbortSignal;
  /** null while they are being asked about anyway, or are of no use any more. */
  readonly holder: () => ProducerNumbers | null;
  readonly raise: (holder: ProducerNumbers) => Promise<ProducerNumbers>;
  readonly onRaised: (numbers: ProducerNumbers) => void;
  readonly onTrouble: (trouble: string) => void;
  /** A successor holds the name, or may have held it. */
  readonly onFailure: (error: Error) => void;
  readonly clock?: Clock;
}

export class NameRenewal {
  readonly #options: NameRenewalOptions;
  readonly #clock: Clock;
  readonly #silenceMs: number;
  readonly #timer: NodeJS.Timeout;
  #asking = false;
  #heard: { monotonic: number; wall: number };

  constructor(options: NameRenewalOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#silenceMs = options.everyMs / SILENCE_PART;
    this.#heard = this.#time();
    this.#timer = setInterval(() => this.renew(), options.everyMs);
    this.#timer.unref();
  }

  /** A broker has taken something of ours: it knows our numbers. */
  heard(): void {
    this.#heard.monotonic = this.#clock.monotonic();
    this.#heard.wall = this.#clock.now();
  }

  /** True when nothing may be sent yet; `onRaised` follows as soon as it may. */
  mustAskFirst(): boolean {
    const { monotonic, wall } = this.#time();
    // A machine that was suspended may show it by its calendar only; one whose calendar was set asks once in vain.
    const silenceMs = Math.max(monotonic - this.#heard.monotonic, Math.abs(wall - this.#heard.wall));
    if (silenceMs < this.#silenceMs) return false;
    this.renew();
    return this.#asking;
  }

  renew(): void {
    const { holder, signal, onRaised, onFailure } = this.#options;
    const before = holder();
    if (this.#asking || before === null || signal.aborted) return;
    this.#asking = true;
    this.#ask(before).then(
      (numbers) => {
        this.#asking = false;
        if (holder() !== before) return;
        this.heard();
        onRaised(numbers);
      },
      (error: unknown) => {
        this.#asking = false;
        if (holder() === before && !signal.aborted) onFailure(error as Error);
      },
    );
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Only a successor ends it: rights that are missing, or not yet read by a broker that has just started, may come. */
  async #ask(before: ProducerNumbers): Promise<ProducerNumbers> {
    const { raise, signal, holder, onTrouble } = this.#options;
    const patience = { what: 'the producer id', signal, onTrouble };
    for (;;) {
      try {
        return await patiently(patience, () => raise(before));
      } catch (error) {
        if (isMysyncError(error, 'TRANSPORT_FENCED') || signal.aborted || holder() !== before) throw error;
        onTrouble(causeText(error));
        await this.#clock.sleep(PAUSE_MS, signal);
      }
    }
  }

  #time(): { monotonic: number; wall: number } {
    return { monotonic: this.#clock.monotonic(), wall: this.#clock.now() };
  }
}
