/** Definitions of columns of every type that the server has. */
import type { CharsetList, Flavor } from './catalogue.ts';
import type { Random } from './random.ts';
import { isAscii, quoteText } from './sql-text.ts';

export interface ColumnType {
  /** Type with its attributes, without NULL, DEFAULT and the like. */
  readonly sql: string;
  /** May be part of a key as it is. */
  readonly keyable: boolean;
  /** Only the catalogue knows what it is: see the exclusions. */
}

const MEMBERS = [
  'a',
  'b',
  'b,c',
  "d''e",
  'é',
  '日本',
  'x y',
  '"q"',
  'null',
  'A1',
  'ü',
  '1',
  '0',
  'long member of an enum',
];

const CHARSETS = 5;

export class ColumnTypes {
  readonly #random: Random;
  readonly #flavor: Flavor;
  readonly #charsets: CharsetList['charsets'];

  constructor(random: Random, flavor: Flavor, { charsets }: CharsetList) {
    this.#random = random;
    this.#flavor = flavor;
    // a few of them in one history: a reader has to learn each
    this.#charsets = random.shuffle(charsets).slice(0, CHARSETS);
  }

  any(): ColumnType {
    const random = this.#random;
    const kind = random.below(this.#flavor === 'mysql' ? 23 : 22);
    if (kind < 3) return this.integer();
    if (kind < 5) return plain(this.#decimal());
    if (kind < 7) return plain(this.#real());
    if (kind < 8)
      return plain(
        random.pick(['BIT(1)', 'BIT(10)', 'BIT(53)', 'BIT(54)', 'BIT(64)', `BIT(${random.between(1, 64)})`]),
      );
    if (kind < 11) return plain(this.#temporal());
    if (kind < 14) return this.text();
    if (kind < 16) return this.#bytes();
    if (kind < 18) return this.#members();
    if (kind < 19) return { sql: this.json(), keyable: false };
    if (kind < 20) return { sql: this.#geometry(), keyable: false };
    if (this.#flavor === 'mysql') {
      if (kind < 22) return this.text();
      return { sql: `VECTOR(${random.pick([1, 3, 16])})`, keyable: false };
    }
    if (random.chance(0.5)) return { sql: random.pick(['UUID', 'INET6', 'INET4']), keyable: true };
    const compressed = random.pick([
      'VARCHAR(500)',
      'TEXT',
      'BLOB',
      'VARBINARY(300)',
      'MEDIUMTEXT',
      'TINYTEXT',
      'LONGBLOB',
    ]);
    return { sql: `${compressed} COMPRESSED`, keyable: false };
  }

  /** Short, and able to name rows. */
  keyable(): ColumnType {
    const random = this.#random;
    for (;;) {
      const kind = random.below(10);
      if (kind < 4) return this.integer();
      if (kind < 6) return plain(`VARCHAR(${random.pick([10, 40])})${this.#charset()}`);
      if (kind < 7)
        return plain(
          random.pick([
            'BINARY(16)',
            'VARBINARY(20)',
            'DECIMAL(10,2)',
            'DECIMAL(30,10)',
            'DATE',
            'DATETIME(6)',
            'TIMESTAMP(3)',
            'TIME(2)',
            'YEAR',
            'BIT(20)',
          ]),
        );
      const type = this.any();
      if (type.keyable) return { ...type, sql: type.sql.replace(/ NULL$/, '') };
    }
  }

  integer(): ColumnType {
    const random = this.#random;
    const type = random.pick([
      'TINYINT',
      'SMALLINT',
      'MEDIUMINT',
      'INT',
      'BIGINT',
      'BIGINT',
      'TINYINT(1)',
      'INT(6)',
      'BIGINT(20)',
    ]);
    return plain(`${type}${random.pick(['', '', ' UNSIGNED', ' ZEROFILL', ' UNSIGNED ZEROFILL'])}`);
  }

  text(): ColumnType {
    const random = this.#random;
    const [sql, keyable] = random.pick([
      ['CHAR(10)', true],
      ['CHAR(1)', true],
      ['CHAR(255)', false],
      ['VARCHAR(20)', true],
      ['VARCHAR(63)', true],
      ['VARCHAR(85)', true],
      ['VARCHAR(300)', false],
      ['VARCHAR(0)', false],
      ['TINYTEXT', false],
      ['TEXT', false],
      ['MEDIUMTEXT', false],
      ['LONGTEXT', false],
    ] as const);
    return { sql: `${sql}${this.#charset()}`, keyable };
  }

  json(): string {
    return this.#flavor === 'mysql' ? 'JSON' : "JSON COMMENT 'json'";
  }

  /** `CHARACTER SET …` of any that the server ships, often with any of its collations; or nothing. */
  charset(): string {
    const charset = this.#random.pick(this.#charsets);
    if (this.#random.chance(0.5)) return ` CHARACTER SET ${charset.name}`;
    return ` CHARACTER SET ${charset.name} COLLATE ${this.#random.pick(charset.collations)}`;
  }

  #charset(): string {
    return this.#random.chance(0.3) ? '' : this.charset();
  }

  #decimal(): string {
    const random = this.#random;
    const precision = random.chance(0.3) ? 65 : random.between(1, 65);
    const scale = random.chance(0.2) ? Math.min(precision, 30) : random.between(0, Math.min(precision, 30));
    return `DECIMAL(${precision},${scale})${random.pick(['', '', ' UNSIGNED', ' ZEROFILL'])}`;
  }

  #real(): string {
    return `${this.#random.pick(['FLOAT', 'DOUBLE', 'FLOAT(7,4)', 'DOUBLE(10,2)', 'FLOAT(24)', 'FLOAT(53)'])}${this.#random.pick(['', '', ' UNSIGNED', ' ZEROFILL'])}`;
  }

  #temporal(): string {
    const random = this.#random;
    const digits = random.pick(['', '(1)', '(2)', '(3)', '(4)', '(5)', '(6)', '(6)']);
    return random.pick([
      'DATE',
      'YEAR',
      `TIME${digits}`,
      `TIME${digits}`,
      `DATETIME${digits}`,
      `DATETIME${digits}`,
      `TIMESTAMP${digits} NULL`,
      `TIMESTAMP${digits} NULL`,
    ]);
  }

  #bytes(): ColumnType {
    const random = this.#random;
    const sql = random.pick([
      'BINARY(1)',
      'BINARY(16)',
      'BINARY(255)',
      'VARBINARY(20)',
      'VARBINARY(300)',
      'TINYBLOB',
      'BLOB',
      'MEDIUMBLOB',
      'LONGBLOB',
      'VARBINARY(0)',
    ]);
    return { sql, keyable: sql === 'BINARY(16)' || sql === 'VARBINARY(20)' };
  }

  /** Members are sent in utf8mb4, so the session must speak it. */
  #members(): ColumnType {
    const random = this.#random;
    const isSet = random.chance(0.4);
    const base = random.some(MEMBERS, 0.6).filter((member) => !(isSet && member.includes(',')));
    const more = random.chance(0.15) ? Array.from({ length: isSet ? 45 : 300 }, (_, i) => `m${i}`) : [];
    const members = [...(base.length === 0 ? ['only'] : random.shuffle(base)), ...more];
    const list = members.map((member) => `'${member}'`).join(',');
    const charset = random.chance(0.7)
      ? ''
      : random.pick([
          ' CHARACTER SET utf8mb4',
          ' CHARACTER SET utf16',
          ' CHARACTER SET ucs2',
          ' CHARACTER SET utf8mb3',
        ]);
    return {
      sql: `${isSet ? 'SET' : 'ENUM'}(${list})${charset}`,
      keyable: more.length === 0 && isAscii(list),
    };
  }

  #geometry(): string {
    const random = this.#random;
    const type = random.pick([
      'GEOMETRY',
      'POINT',
      'LINESTRING',
      'POLYGON',
      'MULTIPOINT',
      'MULTILINESTRING',
      'MULTIPOLYGON',
      'GEOMETRYCOLLECTION',
    ]);
    return this.#flavor === 'mysql' && random.chance(0.2) ? `${type} SRID ${random.pick([0, 4326, 3857])}` : type;
  }
}

function plain(sql: string): ColumnType {
  return { sql, keyable: true };
}

/** A default that every value of the type's kind may have; '' for none. */
export function randomDefault(random: Random, type: string, flavor: Flavor): string {
  if (!random.chance(0.35)) return '';
  if (/^(TINY|SMALL|MEDIUM|BIG)?INT/.test(type)) return ` DEFAULT ${random.pick(['0', '1', '7'])}`;
  if (/^(DECIMAL|FLOAT|DOUBLE)/.test(type)) return ` DEFAULT ${random.pick(['0', '0.5', '1'])}`;
  if (/^(CHAR|VARCHAR)\((?!0)/.test(type)) return ` DEFAULT ${random.pick(["''", "'d'", "'5'"])}`;
  if (/^DATETIME/.test(type)) return ` DEFAULT '2024-02-29 00:00:01'`;
  if (/^TIMESTAMP/.test(type)) return ` DEFAULT '2024-02-29 00:00:01'`;
  if (/^DATE/.test(type)) return ` DEFAULT '2024-02-29'`;
  if (/^(JSON)/.test(type)) return flavor === 'mysql' ? " DEFAULT (JSON_OBJECT('d', 1))" : " DEFAULT '{}'";
  if (/^(TEXT|MEDIUMTEXT)/.test(type)) return ` DEFAULT (${quoteText('dé')})`;
  return '';
}
