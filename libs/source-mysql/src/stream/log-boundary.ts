import { formatBinlogPosition, type GtidSet, parseGtidSet, type SourcePosition } from '@mysync/core';
import { fileReplaced } from '../errors.ts';
import type { LogCursor } from './log-position.ts';

export interface LogBoundaryOptions {
  readonly flavor: 'mysql' | 'mariadb';
  readonly from: SourcePosition;
  /** Where reading is. */
  readonly cursor: LogCursor;
}

/**
 * What reading resumes from: the end of the last transaction that was handed over or held nothing for us, with the GTIDs and the
 * file's time of creation that belong to it. Moved only between transactions: whoever calls sees to that.
 */
export class LogBoundary {
  readonly #flavor: 'mysql' | 'mariadb';
  readonly #cursor: LogCursor;
  readonly #gtids: GtidSet;
  /** '' in the position means unknown unless the log is read from a file's start, which tells. */
  #gtidsKnown: boolean;
  /** Of the file in hand, in seconds; 0 before it has said so. */
  #fileCreated: number;
  #position: SourcePosition;
  #moved = false;

  constructor({ flavor, from, cursor }: LogBoundaryOptions) {
    this.#flavor = flavor;
    this.#cursor = cursor;
    this.#gtids = parseGtidSet(flavor, from.gtidSet);
    this.#gtidsKnown = from.gtidSet !== '';
    this.#fileCreated = from.fileCreated ?? 0;
    this.#position = from;
  }

  get position(): SourcePosition {
    return this.#position;
  }

  /** Nobody was told of it yet. */
  get hasMoved(): boolean {
    return this.#moved;
  }

  told(): void {
    this.#moved = false;
  }

  /** Everything before the place where reading is has been handed over; `gtid`: of the transaction that ends there, or ''. */
  pass(gtid: string): void {
    // reading began behind a set of GTIDs: no place in the log is behind it before the first transaction that was not in it
    if (this.#position.file === '' && gtid === '') return;
    if (gtid !== '') this.#gtids.add(gtid);
    this.#moved = true;
    const { file, offset } = this.#cursor;
    this.#position = this.#stamped(file, offset, this.#gtidsKnown ? this.#gtids.toString() : '');
  }

  /** Reading goes on in another file, of which nothing is known yet. */
  passFile(): void {
    this.#fileCreated = 0;
    this.pass('');
  }

  /**
   * Every connection begins with the format of its first file, from wherever in it the log is asked for. Throws when it is not the
   * file that was read before.
   */
  learnFile(createdSeconds: number): void {
    if (createdSeconds === 0) return;
    if (this.#fileCreated !== 0 && this.#fileCreated !== createdSeconds) {
      throw fileReplaced(formatBinlogPosition(this.#position), this.#fileCreated, createdSeconds);
    }
    this.#fileCreated = createdSeconds;
    const { file, offset, gtidSet } = this.#position;
    if (file === this.#cursor.file) this.#position = this.#stamped(file, offset, gtidSet);
  }

  /** What a file says of itself before its first transaction: what happened before that. */
  learnGtids(gtidSet: string): void {
    // MySQL: also what was declared as executed and never logged (gtid_purged)
    if (!this.#gtidsKnown || this.#flavor === 'mysql') this.#gtids.addAll(gtidSet);
    this.#gtidsKnown = true;
  }

  #stamped(file: string, offset: number, gtidSet: string): SourcePosition {
    const fileCreated = this.#fileCreated;
    return fileCreated === 0 ? { file, offset, gtidSet } : { file, offset, gtidSet, fileCreated };
  }
}
