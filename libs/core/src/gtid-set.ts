/**
 * GTID sets of both flavours: which transactions a server has executed, or a reader has read.
 *
 * A GTID names one transaction; a set is not a GTID. The two flavours mean different things by it:
 * - MySQL: for each server UUID (and tag) the intervals of transaction numbers. It may have holes.
 * - MariaDB: for each domain the last transaction. It stands for everything in that domain up to there, in the order of the log.
 *
 * Sets of different flavours are never compared: that throws. `add` and `addAll` change the set in place, for whoever follows a log; all else makes
 * new ones.
 */
import { MysqlGtidSet } from './gtid-set-mysql.ts';
import { positionErrors } from './position.ts';

export type GtidFlavor = 'mysql' | 'mariadb';

export interface GtidSet {
  readonly flavor: GtidFlavor;
  readonly isEmpty: boolean;
  /** Adds one transaction, the latest of the log. Throws POSITION_INVALID. */
  add(gtid: string): void;
  /** Adds a whole set in its text form. Throws POSITION_INVALID. */
  addAll(text: string): void;
  /** The one transaction is in the set. */
  has(gtid: string): boolean;
  /** Everything of `other` is in this one too (MySQL's GTID_SUBSET(other, this)). */
  contains(other: GtidSet): boolean;
  equals(other: GtidSet): boolean;
  union(other: GtidSet): GtidSet;
  /** What is in this one and not in `other` (MySQL's GTID_SUBTRACT). MariaDB: the domains in which this one is further, up to its last transactions there. */
  subtract(other: GtidSet): GtidSet;
  /** As the server prints it, without line breaks; reads back as the same set. */
  toString(): string;
}

/** Throws POSITION_INVALID. */
export function parseGtidSet(flavor: GtidFlavor, text: string): GtidSet {
  const set = flavor === 'mysql' ? new MysqlGtidSet() : new MariadbGtidSet();
  set.addAll(text);
  return set;
}

interface MariadbGtid {
  readonly text: string;
  /** Where its sequence begins: that is cut out only when sets are compared, since one is added for each transaction that is read. */
  readonly sequenceAt: number;
}

const MARIADB_GTID = /^(\d{1,10})-\d{1,10}-\d{1,20}$/;
const MOST_SEQUENCE_DIGITS = 20;

/** `0-1-42,5-3-7`: domain, server, sequence. */
class MariadbGtidSet implements GtidSet {
  readonly flavor = 'mariadb';
  readonly #last: Map<number, MariadbGtid>;
  /** Domain and server of the GTID that was added last: most come from one server. */
  #lastPrefix = '';
  #lastDomain = 0;

  constructor(last: Iterable<readonly [number, MariadbGtid]> = []) {
    this.#last = new Map(last);
  }

  get isEmpty(): boolean {
    return this.#last.size === 0;
  }

  /** The last one added counts, also where its number is lower: a server that is not strict may log such. */
  add(gtid: string): void {
    const sequenceAt = this.#lastPrefix.length;
    if (sequenceAt > 0 && gtid.startsWith(this.#lastPrefix) && isSequence(gtid, sequenceAt)) {
      this.#last.set(this.#lastDomain, { text: gtid, sequenceAt });
      return;
    }
    const [domain, entry] = readMariadbGtid(gtid);
    this.#last.set(domain, entry);
    this.#lastPrefix = gtid.slice(0, entry.sequenceAt);
    this.#lastDomain = domain;
  }

  addAll(text: string): void {
    for (const part of text.replace(/\s/g, '').split(',')) if (part !== '') this.add(part);
  }

  has(gtid: string): boolean {
    const [domain, theirs] = readMariadbGtid(gtid);
    const ours = this.#last.get(domain);
    return ours !== undefined && sequenceOf(ours) >= sequenceOf(theirs);
  }

  contains(other: GtidSet): boolean {
    for (const [domain, theirs] of lastOf(other)) {
      const ours = this.#last.get(domain);
      if (ours === undefined || sequenceOf(ours) < sequenceOf(theirs)) return false;
    }
    return true;
  }

  equals(other: GtidSet): boolean {
    return lastOf(other).size === this.#last.size && this.toString() === other.toString();
  }

  union(other: GtidSet): GtidSet {
    const both = new Map(this.#last);
    for (const [domain, theirs] of lastOf(other)) {
      const ours = both.get(domain);
      if (ours === undefined || sequenceOf(ours) < sequenceOf(theirs)) both.set(domain, theirs);
    }
    return new MariadbGtidSet(both);
  }

  subtract(other: GtidSet): GtidSet {
    const theirs = lastOf(other);
    return new MariadbGtidSet(
      [...this.#last].filter(([domain, ours]) => sequenceOf(theirs.get(domain)) < sequenceOf(ours)),
    );
  }

  toString(): string {
    if (this.#last.size === 1) return this.#last.get(this.#lastDomain)?.text ?? this.#sorted();
    return this.#sorted();
  }

  #sorted(): string {
    const domains = [...this.#last.entries()].sort((a, b) => a[0] - b[0]);
    return domains.map(([, { text }]) => text).join(',');
  }

  static last(set: MariadbGtidSet): ReadonlyMap<number, MariadbGtid> {
    return set.#last;
  }
}

function lastOf(set: GtidSet): ReadonlyMap<number, MariadbGtid> {
  if (set instanceof MariadbGtidSet) return MariadbGtidSet.last(set);
  throw positionErrors.POSITION_INVALID({ message: `'${set}' is not a GTID set of MariaDB` });
}

function readMariadbGtid(text: string): readonly [number, MariadbGtid] {
  const match = MARIADB_GTID.exec(text);
  if (match === null) {
    throw positionErrors.POSITION_INVALID({ message: `'${text}' is not a GTID of MariaDB: domain-server-sequence` });
  }
  return [Number(match[1]), { text, sequenceAt: text.lastIndexOf('-') + 1 }];
}

/** Of a domain without any: less than all. */
function sequenceOf(gtid: MariadbGtid | undefined): bigint {
  return gtid === undefined ? -1n : BigInt(gtid.text.slice(gtid.sequenceAt));
}

/** One to twenty digits up to the end. */
function isSequence(text: string, from: number): boolean {
  if (text.length === from || text.length > from + MOST_SEQUENCE_DIGITS) return false;
  for (let i = from; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code < 0x30 || code > 0x39) return false;
  }
  return true;
}
