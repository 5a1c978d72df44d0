/** The demo's shop: a schema, some 50,000 rows, and the changes of a busy day. */
import type { Connection } from 'mysql2/promise';
import { Random } from './random.ts';

export const TABLES = ['customers', 'products', 'orders', 'order_items'] as const;

const SCHEMA = `
  CREATE TABLE customers (
    id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(80) NOT NULL,
    email VARCHAR(120) NOT NULL,
    city VARCHAR(60) NOT NULL,
    birthday DATE NULL,
    credit DECIMAL(10,2) NOT NULL DEFAULT 0,
    note TEXT NULL,
    changed TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    UNIQUE KEY email (email)
  );
  CREATE TABLE products (
    id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    sku CHAR(10) NOT NULL,
    title VARCHAR(120) NOT NULL,
    price DECIMAL(10,2) NOT NULL,
    stock INT NOT NULL,
    size ENUM('S','M','L','XL') NOT NULL,
    tags SET('new','sale','eco','last one') NOT NULL
  );
  CREATE TABLE orders (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    customer_id INT UNSIGNED NOT NULL,
    state ENUM('open','paid','sent','returned') NOT NULL,
    total DECIMAL(12,2) NOT NULL,
    placed DATETIME(3) NOT NULL,
    remark VARCHAR(200) NULL,
    KEY customer (customer_id)
  );
  CREATE TABLE order_items (
    order_id BIGINT UNSIGNED NOT NULL,
    line SMALLINT UNSIGNED NOT NULL,
    product_id INT UNSIGNED NOT NULL,
    quantity SMALLINT NOT NULL,
    price DECIMAL(10,2) NOT NULL,
    PRIMARY KEY (order_id, line)
  )`;

const FIRST = [
  'Ada',
  'Björn',
  'Chloé',
  'Dmitri',
  'Eszter',
  'Fatima',
  'Gül',
  'Hana',
  'Íris',
  'João',
  'Kenji',
  'Lệ',
  '美玲',
];
const LAST = [
  'Andersson',
  'Brown',
  'Çelik',
  'Dvořák',
  'Eriksen',
  'Fernández',
  'García',
  'Haddad',
  'Ito',
  'Jansen',
  'O’Neil',
  'Müller',
];
const CITY = [
  'Amsterdam',
  'Bergen',
  'Córdoba',
  'Dublin',
  'Győr',
  'Kraków',
  'Łódź',
  'Malmö',
  'Osaka',
  'Porto',
  'Zürich',
  '上海',
];
const THING = [
  'shirt',
  'jacket',
  'lamp',
  'chair',
  'kettle',
  'notebook',
  'bicycle bell',
  'rain coat',
  'tea pot',
  'rucksack',
];
const COLOUR = ['red', 'green', 'sea blue', 'sand', 'black', 'écru'];

/** The customer that the demo shows and measures with: the traffic leaves it alone. */
export const WATCHED = 42;

const CUSTOMERS = 5_000;
const PRODUCTS = 1_000;
const ORDERS = 14_000;

/** Makes the schema and loads about 50,000 rows. */
export async function loadShop(connection: Connection, database: string): Promise<number> {
  const random = new Random(20);
  await connection.query(`CREATE DATABASE ${database} CHARACTER SET utf8mb4; USE ${database}; ${SCHEMA}`);
  await connection.query('SET autocommit = 0');
  let rows = 0;
  const insert = async (table: string, count: number, row: (index: number) => unknown[]): Promise<void> => {
    for (let from = 0; from < count; from += 1000) {
      const part = Array.from({ length: Math.min(1000, count - from) }, (_, index) => row(from + index + 1));
      await connection.query(`INSERT INTO ${table} VALUES ?`, [part]);
      rows += part.length;
    }
    await connection.query('COMMIT');
  };
  await insert('customers', CUSTOMERS, (id) => customer(random, id));
  await insert('products', PRODUCTS, (id) => product(random, id));
  await insert('orders', ORDERS, (id) => order(random, id));
  await insert('order_items', ORDERS * 2, (index) => item(random, Math.ceil(index / 2), ((index - 1) % 2) + 1));
  await connection.query('SET autocommit = 1');
  return rows;
}

function customer(random: Random, id: number): unknown[] {
  const name = `${random.pick(FIRST)} ${random.pick(LAST)}`;
  const birthday =
    random.below(10) === 0 ? null : `19${50 + random.below(50)}-0${1 + random.below(9)}-1${random.below(10)}`;
  const note = random.below(4) === 0 ? `likes ${random.pick(COLOUR)}` : null;
  return [
    id,
    name,
    `customer${id}@example.org`,
    random.pick(CITY),
    birthday,
    random.below(100_000) / 100,
    note,
    '2024-05-01 10:00:00.123456',
  ];
}

function product(random: Random, id: number): unknown[] {
  const tags = ['new', 'sale', 'eco', 'last one'].filter(() => random.below(3) === 0).join(',');
  const title = `${random.pick(COLOUR)} ${random.pick(THING)}`;
  return [
    id,
    `SKU${String(id).padStart(7, '0')}`,
    title,
    1 + random.below(20_000) / 100,
    random.below(500),
    random.pick(['S', 'M', 'L', 'XL']),
    tags,
  ];
}

function order(random: Random, id: number): unknown[] {
  const placed = `2024-0${1 + random.below(9)}-${10 + random.below(18)} 1${random.below(10)}:${10 + random.below(50)}:00.${100 + random.below(900)}`;
  const remark = random.below(5) === 0 ? 'please ring twice' : null;
  return [
    id,
    1 + random.below(CUSTOMERS),
    random.pick(['open', 'paid', 'sent', 'returned']),
    random.below(50_000) / 100,
    placed,
    remark,
  ];
}

function item(random: Random, orderId: number, line: number): unknown[] {
  return [orderId, line, 1 + random.below(PRODUCTS), 1 + random.below(5), 1 + random.below(20_000) / 100];
}

/** Random changes: single rows, transactions over several tables, deletes, key changes, rollbacks. */
export class ShopTraffic {
  readonly #connection: Connection;
  readonly #random = new Random(7);
  #nextOrder = ORDERS + 1;
  #nextCustomer = CUSTOMERS + 1;
  /** Row changes committed. */
  rows = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** One statement or transaction. */
  async step(): Promise<void> {
    const kind = this.#random.below(100);
    if (kind < 30) await this.#placeOrder();
    else if (kind < 60) await this.#pay();
    else if (kind < 75) await this.#restock();
    else if (kind < 83) await this.#register();
    else if (kind < 90) await this.#cancelOrder();
    else if (kind < 94) await this.#renumber();
    else if (kind < 97) await this.#abandon();
    else await this.#upsert();
  }

  #someCustomer(): number {
    const id = 1 + this.#random.below(CUSTOMERS);
    return id === WATCHED ? id + 1 : id;
  }

  async #run(sql: string, values: unknown[] = []): Promise<number> {
    const [result] = await this.#connection.query(sql, values);
    return (result as { affectedRows?: number }).affectedRows ?? 0;
  }

  async #transaction(work: () => Promise<number>, end: 'COMMIT' | 'ROLLBACK' = 'COMMIT'): Promise<void> {
    await this.#connection.query('BEGIN');
    const rows = await work();
    await this.#connection.query(end);
    if (end === 'COMMIT') this.rows += rows;
  }

  async #placeOrder(): Promise<void> {
    const id = this.#nextOrder++;
    await this.#transaction(async () => {
      const items = Array.from({ length: 1 + this.#random.below(4) }, (_, index) => item(this.#random, id, index + 1));
      let rows = await this.#run('INSERT INTO orders VALUES (?)', [order(this.#random, id)]);
      rows += await this.#run('INSERT INTO order_items VALUES ?', [items]);
      rows += await this.#run('UPDATE products SET stock = stock - 1 WHERE id = ?', [1 + this.#random.below(PRODUCTS)]);
      return rows;
    });
  }

  async #pay(): Promise<void> {
    const id = 1 + this.#random.below(this.#nextOrder - 1);
    this.rows += await this.#run("UPDATE orders SET state = 'paid', remark = CONCAT('paid ', state) WHERE id = ?", [
      id,
    ]);
  }

  async #restock(): Promise<void> {
    const from = 1 + this.#random.below(PRODUCTS - 20);
    this.rows += await this.#run(
      'UPDATE products SET stock = stock + 10, price = price * 1.01 WHERE id BETWEEN ? AND ?',
      [from, from + 9],
    );
  }

  async #register(): Promise<void> {
    const id = this.#nextCustomer++;
    this.rows += await this.#run('INSERT INTO customers VALUES (?)', [customer(this.#random, id)]);
  }

  async #cancelOrder(): Promise<void> {
    const id = 1 + this.#random.below(this.#nextOrder - 1);
    await this.#transaction(async () => {
      const rows = await this.#run('DELETE FROM order_items WHERE order_id = ?', [id]);
      return rows + (await this.#run('DELETE FROM orders WHERE id = ?', [id]));
    });
  }

  /** Moves a primary key. */
  async #renumber(): Promise<void> {
    const id = this.#someCustomer();
    this.rows += await this.#run('UPDATE IGNORE customers SET id = ? WHERE id = ?', [this.#nextCustomer++, id]);
  }

  async #abandon(): Promise<void> {
    await this.#transaction(async () => {
      return await this.#run('UPDATE customers SET credit = credit + 1 WHERE id = ?', [this.#someCustomer()]);
    }, 'ROLLBACK');
  }

  /** An upsert that hits another unique key. */
  async #upsert(): Promise<void> {
    const values = customer(this.#random, this.#nextCustomer++);
    values[2] = `customer${this.#someCustomer()}@example.org`;
    const sql = 'INSERT INTO customers VALUES (?) ON DUPLICATE KEY UPDATE city = VALUES(city), note = NULL';
    this.rows += await this.#run(sql, [values]);
  }
}
