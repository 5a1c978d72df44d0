/**
 * The module of `assembly/` with a memory of its own, and what it asks from here. Plans of tables and the records themselves stay in the memory between calls, so
 * each stream has one: what it handed over and nobody gave back goes with it.
 */
import { createHash } from 'node:crypto';
import { ByteWriter, type TransactionBlock, writeValue } from '@mysync/wire';
import { RowReader } from '../binlog/row-reader.ts';
import type { RowsEvent } from '../binlog/rows-event.ts';
import { opaqueText, quote } from '../json/binary-json.ts';
import { doubleText } from '../json/double-text.ts';
import type { TranscribedTable } from './compile-table.ts';
import { Failure } from './failure.ts';
import {
  BLOCK,
  BLOCK_BYTES,
  DELETE,
  FAIL_ROOM,
  INPUT,
  INSERT,
  MEMORY_PAGES,
  PLANS,
  PLANS_BYTES,
  STATE_AT,
  STATE_EXPECTED,
  STATE_ROW,
  UPDATE,
} from './layout.ts';
import { MODULE } from './module-bytes.ts';
import type { EventPlace } from './rows-transcriber.ts';
import { LentSlabs, type Room } from './slab.ts';

/** The parts of the API that are used; the types of Node 20 lack it. */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Memory: new (pages: {
    readonly initial: number;
    readonly maximum: number;
  }) => { readonly buffer: ArrayBuffer };
  readonly Instance: new (
    module: object,
    imports: Readonly<Record<string, object>>,
  ) => { readonly exports: { readonly transcribe: Transcribe } };
}

/** Told in `assembly/index.ts`. */
type Transcribe = (
  plan: number,
  operation: number,
  from: number,
  to: number,
  blockBytes: number,
  fileBytes: number,
  eventOffset: number,
  firstOrdinal: number,
  begin: number,
  first: number,
  enough: number,
  limit: number,
) => void;

const ROW_HASH_BYTES = 16;

const OPERATIONS = { insert: INSERT, update: UPDATE, delete: DELETE } as const;

export class TranscriberModule {
  /** The memory, as numbers of four bytes. */
  readonly words: Uint32Array;
  /** Where records stay. */
  readonly slabs: LentSlabs;
  readonly #memory: Buffer;
  readonly #transcribe: Transcribe;
  readonly #reader = new RowReader([]);
  readonly #writer = new ByteWriter();
  #table: TranscribedTable | undefined;
  #places = new WeakMap<Uint8Array, number>();
  #plansEnd = PLANS;
  #plan = 0;
  #block: TransactionBlock | undefined;
  #blockBytes = 0;
  #fileBytes = 0;
  #eventOffset = 0;
  /** Where the rows under way end. */
  #end = 0;
  /** Where their records end at the latest. */
  #limit = 0;

  private constructor(api: WebAssemblyApi) {
    const host = {
      fail: (code: number, at: number): never => {
        throw new Failure(code, at);
      },
      reference: (column: number, from: number, out: number): number => this.#reference(column, from, out),
      rowHash: (from: number, to: number, out: number): void => {
        const digest = createHash('sha256').update(this.#memory.subarray(from, to)).digest();
        this.#memory.set(digest.subarray(0, ROW_HASH_BYTES), out);
      },
      jsonDouble: (value: number, out: number): number => this.#put(Buffer.from(doubleText(value), 'latin1'), out),
      jsonOpaque: (type: number, from: number, to: number, start: number, end: number, out: number): number => {
        const text = opaqueText(type, this.#memory.subarray(start, end), from - start, to - start);
        return this.#put(Buffer.from(text, 'latin1'), out);
      },
      jsonText: (from: number, to: number, out: number): number =>
        this.#put(Buffer.from(quote(this.#memory.toString('utf8', from, to)), 'utf8'), out),
    };
    const memory = new api.Memory({ initial: MEMORY_PAGES, maximum: MEMORY_PAGES });
    compiled ??= new api.Module(Buffer.from(MODULE, 'base64'));
    this.#transcribe = new api.Instance(compiled, { env: { memory }, host }).exports.transcribe;
    this.#memory = Buffer.from(memory.buffer);
    this.words = new Uint32Array(memory.buffer);
    this.slabs = new LentSlabs((from, to) => this.#memory.subarray(from, to));
  }

  /** undefined where there is no WebAssembly (`--jitless`): everything is then left to the reference. */
  static make(): TranscriberModule | undefined {
    const { WebAssembly: api } = globalThis as { readonly WebAssembly?: WebAssemblyApi };
    return api === undefined ? undefined : new TranscriberModule(api);
  }

  /** What the rows to come share. False when there is no room for it. */
  open(table: TranscribedTable, place: EventPlace): boolean {
    const { block, file } = place;
    const { image } = table;
    const blockBytes = block.end - block.start;
    if (image === null || blockBytes > BLOCK_BYTES / 2) return false;
    if (table !== this.#table) {
      this.#plan = this.#placeOf(image);
      this.#table = table;
    }
    if (block !== this.#block) {
      const { slab, start } = block;
      // a view would cost more than these few bytes
      for (let i = 0; i < blockBytes; i += 1) this.#memory[BLOCK + i] = slab[start + i] as number;
      this.#block = block;
      this.#blockBytes = blockBytes;
    }
    this.#fileBytes = 0;
    if (file !== '' && file !== block.file) {
      const bytes = Buffer.from(file, 'utf8');
      if (bytes.length > BLOCK_BYTES / 2) return false;
      this.#memory.set(bytes, BLOCK + blockBytes);
      this.#fileBytes = bytes.length;
    }
    this.#eventOffset = place.offset;
    return true;
  }

  /** Takes `rows[from, to)` in. */
  take(rows: Buffer, from: number, to: number): void {
    this.#memory.set(rows.subarray(from, to), INPUT);
    this.#end = INPUT + to - from;
  }

  /** Of what was taken in, the rows in `[from, to)`, of which there are some, or as many of them as find room. Throws a RangeError. */
  run(operation: RowsEvent['operation'], from: number, to: number, ordinal: number, room: Room): void {
    this.#limit = room.limit;
    this.#transcribe(
      this.#plan,
      OPERATIONS[operation],
      INPUT + from,
      INPUT + to,
      this.#blockBytes,
      this.#fileBytes,
      this.#eventOffset,
      ordinal,
      room.begin,
      room.first,
      room.enough,
      room.limit,
    );
  }

  /** Bytes that the next record takes, to go by those before it. */
  get expected(): number {
    return this.words[STATE_EXPECTED >> 2] as number;
  }

  set expected(bytes: number) {
    this.words[STATE_EXPECTED >> 2] = bytes;
  }

  /** The first row that is in no record yet, counted from what was taken in. */
  get row(): number {
    return (this.words[STATE_ROW >> 2] as number) - INPUT;
  }

  /** A view of the memory. */
  view(from: number, to: number): Buffer {
    return this.#memory.subarray(from, to);
  }

  #placeOf(image: Uint8Array): number {
    const known = this.#places.get(image);
    if (known !== undefined) return known;
    if (this.#plansEnd + image.length > PLANS + PLANS_BYTES) {
      this.#places = new WeakMap();
      this.#plansEnd = PLANS;
    }
    const place = this.#plansEnd;
    this.#memory.set(image, place);
    this.#plansEnd += image.length;
    this.#places.set(image, place);
    return place;
  }

  #reference(column: number, from: number, out: number): number {
    const table = this.#table as TranscribedTable;
    const reader = this.#reader;
    reader.open(this.#memory.subarray(0, this.#end), from);
    const value = reader.value(table.readers[column] as TranscribedTable['readers'][number]);
    if (reader.at > this.#end) throw new RangeError(`a value ends at ${reader.at}, the rows end at ${this.#end}`);
    this.words[STATE_AT >> 2] = reader.at;
    const writer = this.#writer;
    writer.begin();
    writeValue(writer, table.plan, column, value);
    return this.#put(writer.buffer.subarray(writer.start, writer.position), out);
  }

  #put(bytes: Uint8Array, out: number): number {
    if (out + bytes.length > this.#limit) throw new Failure(FAIL_ROOM, out);
    this.#memory.set(bytes, out);
    return out + bytes.length;
  }
}

/** One for the process. */
let compiled: object | undefined;
