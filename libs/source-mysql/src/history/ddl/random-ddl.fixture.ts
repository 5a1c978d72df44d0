/** Random CREATE and ALTER statements, many of which a server takes. */
import type { TableDefinition } from '../definition.ts';

/** Repeatable from its seed. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed * 2654435761 + 1) >>> 0;
  }

  /** From 0 to below `n`. */
  roll(n: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * n);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.roll(list.length)] as T;
  }

  chance(percent: number): boolean {
    return this.roll(100) < percent;
  }
}

const NAMES = ['a', 'B', 'c', 'id', 'q"x', 'a.b', '表', 'with space', 'key', "o'k", 'First', 'after'];

export class RandomDdl {
  readonly #dice: Dice;
  readonly #flavor: 'mysql' | 'mariadb';

  constructor(dice: Dice, flavor: 'mysql' | 'mariadb') {
    this.#dice = dice;
    this.#flavor = flavor;
  }

  create(table: string): string {
    const dice = this.#dice;
    const names = this.#shuffled().slice(0, 2 + dice.roll(5));
    const items = names.map((name) => `${quote(name)} ${this.#columnBody()}`);
    if (dice.chance(60)) items.push(`PRIMARY KEY (${this.#parts(names)})`);
    while (dice.chance(40)) items.push(this.#key(names));
    if (dice.chance(20)) items.push(`CHECK (1 = 1)`);
    const gap = dice.pick([' ', '\n\t', ' -- note\n', ' /* x */ ']);
    return `CREATE TABLE ${quote(table)}${gap}(${items.join(`,${gap}`)})${this.#tableOptions()}`;
  }

  alter(table: string, definition: TableDefinition): string {
    const dice = this.#dice;
    const clauses = [this.#clause(definition)];
    while (dice.chance(35)) clauses.push(this.#clause(definition));
    const verb = dice.pick(['ALTER TABLE', 'alter /* c */ table', 'ALTER/**/TABLE', 'ALTER IGNORE TABLE']);
    const start = verb.includes('IGNORE') && this.#flavor === 'mysql' ? 'ALTER TABLE' : verb;
    return `${start} ${quote(table)} ${clauses.join(dice.pick([',', ', ', ',\n# note\n']))}`;
  }

  #clause(definition: TableDefinition): string {
    const dice = this.#dice;
    const names = definition.columns.map((column) => column.name);
    const old = dice.pick(names);
    const fresh = dice.chance(80) ? dice.pick(NAMES) : old;
    const place = dice.pick(['', '', ' FIRST', ` AFTER ${quote(dice.pick(names))}`]);
    const keys = definition.keys.map((key) => key.name);
    const key = keys.length === 0 ? 'nothing' : dice.pick(keys);
    switch (dice.roll(17)) {
      case 0:
      case 1:
        return `ADD ${dice.pick(['', 'COLUMN '])}${this.#ifNotExists()}${quote(fresh)} ${this.#columnBody()}${place}`;
      case 2:
        return `ADD COLUMN (${quote(dice.pick(NAMES))} ${this.#columnBody()}, ${quote(dice.pick(NAMES))} ${this.#columnBody()})`;
      case 3:
        return `DROP ${dice.pick(['', 'COLUMN '])}${quote(old)}`;
      case 4:
      case 5:
        return `MODIFY ${dice.pick(['', 'COLUMN '])}${quote(old)} ${this.#columnBody()}${place}`;
      case 6:
      case 7:
        return `CHANGE ${quote(old)} ${quote(fresh)} ${this.#columnBody()}${place}`;
      case 8:
        return `RENAME COLUMN ${quote(old)} TO ${quote(fresh)}`;
      case 9:
        return `ADD ${this.#key(names)}`;
      case 10:
        return dice.chance(50) ? 'DROP PRIMARY KEY' : `ADD PRIMARY KEY (${this.#parts(names)})`;
      case 11:
        return `DROP ${dice.pick(['INDEX', 'KEY'])} ${quote(key)}`;
      case 12:
        return `RENAME ${dice.pick(['INDEX', 'KEY'])} ${quote(key)} TO ${quote(dice.pick(['k1', 'k2', 'k3']))}`;
      case 13:
        return dice.pick([
          `CONVERT TO CHARACTER SET ${this.#charset()}`,
          `DEFAULT CHARACTER SET ${this.#charset()}`,
          `CHARSET = ${this.#charset()}`,
          'CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin',
          'COLLATE latin1_bin',
        ]);
      case 14:
        return dice.pick([`ALTER ${quote(old)} SET DEFAULT 7`, `ALTER COLUMN ${quote(old)} DROP DEFAULT`]);
      case 15:
        return dice.pick([
          "COMMENT='it''s -- not a comment; DROP TABLE t'",
          'ENGINE=InnoDB',
          'ROW_FORMAT=DYNAMIC',
          'FORCE',
          `/*!50000 ADD */ COLUMN ${quote(fresh)} INT /*!99999 FIRST */`,
          'STATS_PERSISTENT=1 AUTO_INCREMENT 17',
          'ALGORITHM=COPY, LOCK=SHARED',
        ]);
      default:
        return `CHANGE ${quote(old)} ${quote(fresh)} ${this.#columnBody()}, CHANGE ${quote(fresh)} ${quote(old)} ${this.#columnBody()}`;
    }
  }

  #ifNotExists(): string {
    return this.#flavor === 'mariadb' && this.#dice.chance(20) ? 'IF NOT EXISTS ' : '';
  }

  #columnBody(): string {
    const dice = this.#dice;
    const attributes: string[] = [];
    if (dice.chance(50)) attributes.push(dice.pick(['NOT NULL', 'NULL', 'NOT NULL']));
    if (dice.chance(8)) attributes.push(dice.pick(['UNIQUE', 'UNIQUE KEY']));
    if (dice.chance(15)) attributes.push("COMMENT 'it''s; \\'x\\' -- no, `not` \"this\"'");
    if (dice.chance(8)) attributes.push(dice.pick(['INVISIBLE', 'CHECK (1 > 0)', 'DEFAULT NULL']));
    return [this.#type(), ...attributes].join(' ');
  }

  #type(): string {
    const dice = this.#dice;
    const more =
      this.#flavor === 'mariadb' ? ['UUID', 'INET6', 'JSON', 'VARCHAR(20) COMPRESSED'] : ['JSON', 'VECTOR(3)'];
    switch (dice.roll(5)) {
      case 0:
        return dice.pick([
          'TINYINT(1)',
          'INT UNSIGNED',
          'INT(6) ZEROFILL',
          'BIGINT',
          'MEDIUMINT UNSIGNED',
          'SMALLINT SIGNED',
          'BOOL',
          'INTEGER',
          'INT4 UNSIGNED',
          'BIT(10)',
          'BIT',
          'YEAR',
        ]);
      case 1:
        return dice.pick([
          'DECIMAL(10,2)',
          'DECIMAL',
          'NUMERIC(5) UNSIGNED',
          'DEC(65,30)',
          'FLOAT',
          'FLOAT(20)',
          'FLOAT(40)',
          'DOUBLE PRECISION',
          'REAL',
          'DOUBLE(8,2) UNSIGNED',
          'DATE',
          'TIME(3)',
          'DATETIME',
          'DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)',
          'TIMESTAMP',
          'TIMESTAMP(6) NULL DEFAULT NULL',
          'TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP',
        ]);
      case 2:
        return dice.pick([
          'BLOB',
          'TINYBLOB',
          'MEDIUMBLOB',
          'LONGBLOB',
          'BLOB(100)',
          'BLOB(70000)',
          'BINARY(16)',
          'VARBINARY(40)',
          'POINT',
          'GEOMETRY',
          'LONG VARBINARY',
          ...more,
        ]);
      default: {
        const text = dice.pick([
          'CHAR(10)',
          'CHAR',
          'VARCHAR(20)',
          'VARCHAR(300)',
          'CHARACTER VARYING(7)',
          'TEXT',
          'TINYTEXT',
          'MEDIUMTEXT',
          'LONGTEXT',
          'TEXT(90)',
          'TEXT(30000)',
          "ENUM('a','b,c','d''e','x ')",
          'ENUM("p", "q")',
          "SET('r','s','t')",
          "SET('é','s','日本')",
          "ENUM('a','日本','ü')",
          'NCHAR(5)',
          'NATIONAL VARCHAR(9)',
          'LONG',
        ]);
        if (/^N|LONG$/.test(text) || dice.chance(50)) return text;
        return `${text} ${dice.pick([`CHARACTER SET ${this.#charset()}`, `CHARSET ${this.#charset()}`, 'COLLATE latin1_bin', 'BINARY', 'CHARACTER SET utf8mb4 COLLATE utf8mb4_bin', 'CHARACTER SET binary'])}`;
      }
    }
  }

  #charset(): string {
    return this.#dice.pick(['latin1', 'utf8mb4', 'utf8mb3', 'utf8', 'gbk', 'sjis', 'ucs2', 'utf16', 'ascii']);
  }

  #key(names: readonly string[]): string {
    const dice = this.#dice;
    const name = dice.chance(40) ? quote(dice.pick(['k1', 'k2', 'k3'])) : '';
    return dice.pick([
      `UNIQUE ${dice.pick(['', 'KEY', 'INDEX'])} ${name} (${this.#parts(names)})`,
      `CONSTRAINT ${name} UNIQUE (${this.#parts(names)})`,
      `${dice.pick(['KEY', 'INDEX'])} ${name} (${this.#parts(names)}) USING BTREE`,
    ]);
  }

  #parts(names: readonly string[]): string {
    const dice = this.#dice;
    const count = 1 + dice.roll(2);
    const parts = Array.from(
      { length: count },
      () => quote(dice.pick(names)) + dice.pick(['', '', '', '(5)', ' DESC']),
    );
    return parts.join(', ');
  }

  #tableOptions(): string {
    const dice = this.#dice;
    const options: string[] = [];
    if (dice.chance(30)) options.push('ENGINE=InnoDB');
    if (dice.chance(50))
      options.push(
        dice.pick([`DEFAULT CHARSET=${this.#charset()}`, 'COLLATE utf8mb4_bin', `CHARACTER SET ${this.#charset()}`]),
      );
    if (dice.chance(30)) options.push("COMMENT='CHARSET=utf16, x'");
    return ` ${options.join(' ')}`;
  }

  #shuffled(): string[] {
    const list = [...NAMES];
    for (let i = list.length - 1; i > 0; i -= 1) {
      const j = this.#dice.roll(i + 1);
      [list[i], list[j]] = [list[j] as string, list[i] as string];
    }
    return list;
  }
}

export function quote(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}
