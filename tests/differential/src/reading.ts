/** Reads what a seed wrote from the log, and holds it at each mark against what the server said there. */
import { type SourcePosition, tableRefKey } from '@mysync/core';
import type { BinlogSource, SourceItem, SourceRow } from '@mysync/source-mysql';
import { MessageDecoder, type RowMessage } from '@mysync/wire';
import { differences } from './compare.ts';
import { Copy } from './copy.ts';
import type { Random } from './random.ts';
import { type Checkpoint, MARKS } from './world.ts';

export interface ReadingOptions {
  /** A source of its own each time it is opened: another process, so to say. */
  readonly open: () => BinlogSource;
  readonly from: SourcePosition;
  readonly checkpoints: readonly Checkpoint[];
  /** Where reading breaks off and begins anew. */
  readonly random: Random;
  readonly breaksOff: boolean;
  /** Rows that lack columns are read again, and are then as of that moment: only the last mark is compared. */
  readonly isPartial: boolean;
  /** Cuts the connection, some times; the source goes on by itself. */
  readonly cut?: () => Promise<void>;
}

export interface ReadingResult {
  readonly copy: Copy;
  readonly unseen: ReadonlySet<string>;
  /** Rows that were compared. */
  readonly compared: number;
  readonly differences: readonly string[];
}

const MOST_CUTS = 4;

export async function readBack(options: ReadingOptions): Promise<ReadingResult> {
  const reading = new Reading(options);
  await reading.run();
  return reading;
}

class Reading implements ReadingResult {
  readonly #options: ReadingOptions;
  readonly #marks = new MessageDecoder();
  readonly copy = new Copy();
  compared = 0;
  differences: string[] = [];
  /** Tables whose rows changed in ways that the log does not tell of: the source says so, and whoever follows it reads them again. */
  readonly unseen = new Set<string>();
  #checkpoint = 0;
  #done = false;

  constructor(options: ReadingOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { random, breaksOff, open, cut } = this.#options;
    let cuts = MOST_CUTS;
    let position = this.#options.from;
    while (!this.#done) {
      // a reader that dies somewhere: what came after the last commit is forgotten
      let left = breaksOff || cut !== undefined ? random.between(1, 400) : Number.POSITIVE_INFINITY;
      const source = open();
      const stop = new AbortController();
      let transaction: SourceItem[] = [];
      reading: for await (const batch of source.stream({
        from: position,
        signal: stop.signal,
        knownTables: this.copy.refs,
      })) {
        for (const item of batch) {
          transaction.push(item);
          if (item.kind === 'commit' || item.kind === 'keepalive') {
            checkTransaction(transaction);
            for (const each of transaction) this.#take(each);
            transaction = [];
            position = item.position;
          }
          // keepalives come as the server's clock has it
          if (item.kind !== 'keepalive') left -= 1;
          if (this.#done) break reading;
          if (left > 0) continue;
          if (cut === undefined) break reading;
          left = cuts > 0 ? random.between(1, 400) : Number.POSITIVE_INFINITY;
          cuts -= 1;
          await cut();
        }
      }
      stop.abort();
      await source.close();
    }
  }

  #take(item: SourceItem): void {
    this.copy.apply(item);
    if (item.kind === 'unseen') {
      this.unseen.add(tableRefKey(item.table));
      // every statement was noted: what a table was is always known
      if (item.cause === 'versioning') this.differences.push(`${item.table.table} may have been versioned`);
    }
    if (item.kind !== 'row' || !isMark(item)) return;
    const message = this.#marks.decode(item.payload) as RowMessage;
    if (message.schema.table !== MARKS) return;
    this.#compare(Number(message.after?.[0]));
  }

  #compare(mark: number): void {
    const { checkpoints } = this.#options;
    const checkpoint = checkpoints[this.#checkpoint];
    if (checkpoint === undefined || checkpoint.mark !== mark) {
      this.differences.push(`the mark ${mark} came in place of ${checkpoint?.mark}`);
      this.#done = true;
      return;
    }
    const isCompared = !this.#options.isPartial || this.#checkpoint === checkpoints.length - 1;
    const tables = checkpoint.tables.filter(({ ref }) => isCompared && !this.unseen.has(tableRefKey(ref)));
    for (const table of tables) {
      this.compared += table.rows.length;
      this.differences.push(...differences(table, this.copy.of(table.ref)).map((line) => `mark ${mark}: ${line}`));
    }
    this.#checkpoint += 1;
    // the rest follows from the first
    this.#done = this.differences.length > 0 || this.#checkpoint === checkpoints.length;
    if (!this.#done || this.differences.length > 0) return;
    const there = new Set(checkpoint.tables.map((table) => tableRefKey(table.ref)));
    for (const [name, rows] of this.copy.tables) {
      if (rows.size > 0 && !there.has(name) && !this.unseen.has(name) && !name.endsWith(`\0${MARKS}`)) {
        this.differences.push(`${name.replace('\0', '.')} has ${rows.size} rows in the copy and is not on the server`);
      }
    }
  }
}

function isMark(item: SourceRow): boolean {
  return Buffer.from(item.key).includes(MARKS);
}

/** A transaction is a begin, changes numbered from 1 without gaps, and a commit that counts them. */
function checkTransaction(items: readonly SourceItem[]): void {
  const last = items.at(-1);
  const first = items[0];
  if (last?.kind === 'keepalive') {
    if (items.length !== 1) throw new Error('a keepalive inside of a transaction');
    return;
  }
  if (first?.kind !== 'begin') throw new Error('a transaction without its begin');
  const changes = items.slice(1, -1);
  for (const [i, item] of changes.entries()) {
    const ordinal = 'ordinal' in item ? item.ordinal : undefined;
    if (ordinal !== i + 1) throw new Error(`a change has the ordinal ${ordinal} in place of ${i + 1}`);
  }
  if (last?.kind !== 'commit' || last.ordinals !== changes.length)
    throw new Error('a commit that counts other changes');
}
