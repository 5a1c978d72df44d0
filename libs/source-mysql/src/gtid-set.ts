/**
 * GTID sets as value objects, of both flavours.
 *
 * MySQL: per server UUID (and tag) the intervals of transaction numbers executed. MariaDB: per domain the last transaction; its
 * set is a position, since sequence numbers rise within a domain.
 */
export interface GtidSet {
  /** Adds one transaction. */
  add(gtid: string): void;
  /** Adds a whole set in its text form. */
  addAll(text: string): void;
  toString(): string;
}

export function parseGtidSet(flavor: 'mysql' | 'mariadb', text: string): GtidSet {
  return flavor === 'mysql' ? new MysqlGtidSet(text) : new MariadbGtidSet(text);
}

/** `uuid:1-5:7,uuid:tag:1-3`: inclusive intervals, ascending, none touching the next. */
class MysqlGtidSet implements GtidSet {
  /** By `uuid` or `uuid:tag`. Flat: start, end, start, end … */
  readonly #intervals = new Map<string, number[]>();

  constructor(text: string) {
    this.addAll(text);
  }

  addAll(text: string): void {
    for (const part of text.replace(/\s/g, '').toLowerCase().split(',')) {
      if (part === '') continue;
      const [uuid = '', ...fields] = part.split(':');
      let key = uuid;
      for (const field of fields) {
        const match = /^(\d+)(?:-(\d+))?$/.exec(field);
        if (match === null) key = `${uuid}:${field}`;
        else this.#insert(key, Number(match[1]), Number(match[2] ?? match[1]));
      }
    }
  }

  add(gtid: string): void {
    const at = gtid.lastIndexOf(':');
    const number = Number(gtid.slice(at + 1));
    this.#insert(gtid.slice(0, at).toLowerCase(), number, number);
  }

  toString(): string {
    const parts: string[] = [];
    let open = '';
    for (const key of [...this.#intervals.keys()].sort()) {
      const [uuid = '', tag] = key.split(':');
      const ranges = pairs(this.#intervals.get(key) ?? []).map(([from, to]) =>
        from === to ? `${from}` : `${from}-${to}`,
      );
      const body = `${tag === undefined ? '' : `:${tag}`}:${ranges.join(':')}`;
      if (uuid === open) parts.push(`${parts.pop() ?? ''}${body}`);
      else parts.push(`${uuid}${body}`);
      open = uuid;
    }
    return parts.join(',');
  }

  #insert(key: string, from: number, to: number): void {
    const list = this.#intervals.get(key);
    if (list === undefined) {
      this.#intervals.set(key, [from, to]);
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
  }
}

/** `0-1-42,5-3-7`: domain, server, sequence. */
class MariadbGtidSet implements GtidSet {
  readonly #last = new Map<number, string>();

  constructor(text: string) {
    this.addAll(text);
  }

  addAll(text: string): void {
    for (const part of text.replace(/\s/g, '').split(',')) if (part !== '') this.add(part);
  }

  add(gtid: string): void {
    this.#last.set(Number(gtid.slice(0, gtid.indexOf('-'))), gtid);
  }

  toString(): string {
    return [...this.#last.entries()]
      .sort((a, b) => a[0] - b[0])
      .map(([, gtid]) => gtid)
      .join(',');
  }
}

function pairs(flat: readonly number[]): (readonly [number, number])[] {
  const result: (readonly [number, number])[] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) result.push([flat[i] ?? 0, flat[i + 1] ?? 0]);
  return result;
}
