/**
 * MySQL's GTID sets: `uuid:1-5:7,uuid:tag:1-3`. Inclusive intervals, ascending, none touching the next; tags in lower case (MySQL manual,
 * "GTID Sets").
 */
import type { GtidSet } from './gtid-set.ts';
import { positionErrors } from './position.ts';

/** Flat: start, end, start, end … */
type Intervals = readonly number[];

export interface MysqlGtidEntry {
  readonly uuid: string;
  /** '' for transactions without one. */
  readonly tag: string;
  /** Inclusive. */
  readonly ranges: readonly (readonly [number, number])[];
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TAG = /^[a-z_][a-z0-9_]{0,31}$/;
const NUMBER = /^[1-9]\d*$/;
/** Below 2^53, whatever they are. */
const SURELY_SAFE_DIGITS = 15;
const RANGE = /^(\d+)(?:-(\d+))?$/;

interface Name {
  /** `uuid` or `uuid:tag`. */
  readonly key: string;
  readonly uuid: string;
  readonly tag: string;
}

export class MysqlGtidSet implements GtidSet {
  readonly flavor = 'mysql';
  /** By `uuid` or `uuid:tag`. */
  readonly #intervals: Map<string, number[]>;
  /** The part in front of the number of the GTID that was added last, and its key: most come from one server. */
  #lastPrefix = '';
  #lastKey = '';
  /** By key, the text of all intervals but the last: only that one grows while a log is followed. */
  readonly #heads = new Map<string, string>();
  /** In the order of the text form; null when a key came since. */
  #names: readonly Name[] | null = null;

  constructor(intervals: Iterable<readonly [string, number[]]> = []) {
    this.#intervals = new Map(intervals);
  }

  get isEmpty(): boolean {
    return this.#intervals.size === 0;
  }

  /** One entry for each UUID and tag, in the order of the text form. */
  get entries(): readonly MysqlGtidEntry[] {
    return this.#sorted().map(({ key, uuid, tag }) => ({ uuid, tag, ranges: pairs(this.#intervals.get(key) ?? []) }));
  }

  add(gtid: string): void {
    const digitsAt = this.#lastPrefix.length;
    if (digitsAt > 0 && gtid.length <= digitsAt + SURELY_SAFE_DIGITS && gtid.startsWith(this.#lastPrefix)) {
      const digits = gtid.slice(digitsAt);
      if (NUMBER.test(digits)) {
        this.#insert(this.#lastKey, Number(digits), Number(digits));
        return;
      }
    }
    const { key, number } = readGtid(gtid);
    this.#lastPrefix = gtid.slice(0, gtid.lastIndexOf(':') + 1);
    this.#lastKey = key;
    this.#insert(key, number, number);
  }

  addAll(text: string): void {
    for (const part of text.replace(/\s/g, '').toLowerCase().split(',')) {
      if (part === '') continue;
      const [uuid = '', ...fields] = part.split(':');
      if (!UUID.test(uuid) || fields.length === 0) throw invalid(part);
      let key = uuid;
      for (const field of fields) {
        const match = RANGE.exec(field);
        if (match === null) {
          if (!TAG.test(field)) throw invalid(part);
          key = `${uuid}:${field}`;
          continue;
        }
        const from = Number(match[1]);
        const to = Number(match[2] ?? match[1]);
        if (from < 1 || to < from || !Number.isSafeInteger(to)) throw invalid(part);
        this.#insert(key, from, to);
      }
    }
  }

  has(gtid: string): boolean {
    const { key, number } = readGtid(gtid);
    const list = this.#intervals.get(key);
    return list !== undefined && covers(list, number, number);
  }

  contains(other: GtidSet): boolean {
    for (const [key, theirs] of intervalsOf(other)) {
      const ours = this.#intervals.get(key);
      if (ours === undefined) return false;
      for (const [from, to] of pairs(theirs)) if (!covers(ours, from, to)) return false;
    }
    return true;
  }

  equals(other: GtidSet): boolean {
    return this.contains(other) && other.contains(this);
  }

  union(other: GtidSet): GtidSet {
    const both = new MysqlGtidSet([...this.#intervals].map(([key, list]) => [key, [...list]] as const));
    for (const [key, list] of intervalsOf(other)) for (const [from, to] of pairs(list)) both.#insert(key, from, to);
    return both;
  }

  subtract(other: GtidSet): GtidSet {
    const theirs = intervalsOf(other);
    const rest = new Map<string, number[]>();
    for (const [key, list] of this.#intervals) {
      const left = without(list, theirs.get(key) ?? []);
      if (left.length > 0) rest.set(key, left);
    }
    return new MysqlGtidSet(rest);
  }

  toString(): string {
    let text = '';
    let open = '';
    for (const { key, uuid, tag } of this.#sorted()) {
      if (uuid !== open) text += text === '' ? uuid : `,${uuid}`;
      open = uuid;
      text += tag === '' ? `:${this.#numbers(key)}` : `:${tag}:${this.#numbers(key)}`;
    }
    return text;
  }

  static intervals(set: MysqlGtidSet): ReadonlyMap<string, Intervals> {
    return set.#intervals;
  }

  #sorted(): readonly Name[] {
    this.#names ??= [...this.#intervals.keys()].sort().map((key) => {
      const [uuid = '', tag = ''] = key.split(':');
      return { key, uuid, tag };
    });
    return this.#names;
  }

  #numbers(key: string): string {
    const list = this.#intervals.get(key) ?? [];
    let head = this.#heads.get(key);
    if (head === undefined) {
      head = pairs(list)
        .slice(0, -1)
        .map(([from, to]) => `${rangeText(from, to)}:`)
        .join('');
      this.#heads.set(key, head);
    }
    return head + rangeText(list[list.length - 2] ?? 0, list[list.length - 1] ?? 0);
  }

  #insert(key: string, from: number, to: number): void {
    const list = this.#intervals.get(key);
    if (list === undefined) {
      this.#intervals.set(key, [from, to]);
      this.#names = null;
      return;
    }
    const last = list.length - 1;
    if (from === (list[last] ?? 0) + 1) {
      list[last] = to;
      return;
    }
    const all = [...pairs(list), [from, to] as const].sort((a, b) => a[0] - b[0]);
    const merged: number[] = [];
    for (const [start, end] of all) {
      const top = merged.length - 1;
      const previous = merged[top];
      if (previous !== undefined && start <= previous + 1) merged[top] = Math.max(previous, end);
      else merged.push(start, end);
    }
    this.#intervals.set(key, merged);
    this.#heads.delete(key);
  }
}

function rangeText(from: number, to: number): string {
  return from === to ? String(from) : `${from}-${to}`;
}

function intervalsOf(set: GtidSet): ReadonlyMap<string, Intervals> {
  if (set instanceof MysqlGtidSet) return MysqlGtidSet.intervals(set);
  throw positionErrors.POSITION_INVALID({ message: `'${set}' is not a GTID set of MySQL` });
}

function readGtid(gtid: string): { key: string; number: number } {
  const [uuid = '', ...fields] = gtid.toLowerCase().split(':');
  const number = Number(fields.pop());
  const tag = fields[0];
  const isTagRight = tag === undefined || (fields.length === 1 && TAG.test(tag));
  if (!UUID.test(uuid) || !Number.isSafeInteger(number) || number < 1 || !isTagRight) throw invalid(gtid);
  return { key: tag === undefined ? uuid : `${uuid}:${tag}`, number };
}

function invalid(text: string): Error {
  return positionErrors.POSITION_INVALID({ message: `'${text}' is not a GTID set of MySQL: uuid:1-5 or uuid:tag:1-5` });
}

/** One of the intervals holds all of it. */
function covers(list: Intervals, from: number, to: number): boolean {
  for (let i = list.length - 2; i >= 0; i -= 2) {
    if ((list[i] as number) <= from) return to <= (list[i + 1] as number);
  }
  return false;
}

function without(list: Intervals, cut: Intervals): number[] {
  const rest: number[] = [];
  for (const [start, end] of pairs(list)) {
    let from = start;
    for (const [cutFrom, cutTo] of pairs(cut)) {
      if (cutTo < from || cutFrom > end) continue;
      if (cutFrom > from) rest.push(from, cutFrom - 1);
      from = cutTo + 1;
    }
    if (from <= end) rest.push(from, end);
  }
  return rest;
}

function pairs(flat: Intervals): (readonly [number, number])[] {
  const result: (readonly [number, number])[] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) result.push([flat[i] ?? 0, flat[i + 1] ?? 0]);
  return result;
}
