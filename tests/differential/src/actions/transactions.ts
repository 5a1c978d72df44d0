/** Transactions: with savepoints, rolled back, of mixed engines, XA, beside another session's work. */
import { tableRefKey } from '@mysync/core';
import type { Client } from '../client.ts';
import type { World, WorldTable } from '../world.ts';
import type { Action } from './action.ts';
import { changeRows } from './rows.ts';

/** Takes tables for a transaction: nobody else changes them until it ends. */
async function holding(world: World, tables: readonly WorldTable[], work: () => Promise<void>): Promise<void> {
  const names = tables.map((table) => tableRefKey(table.ref));
  for (const name of names) world.busy.add(name);
  try {
    await work();
  } finally {
    for (const name of names) world.busy.delete(name);
  }
}

function take(world: World): WorldTable[] {
  return world.random.shuffle(world.tables()).slice(0, world.random.between(1, 3));
}

async function single(world: World): Promise<void> {
  const table = world.pick();
  if (table !== undefined) await changeRows(world, world.main, table);
}

async function steps(world: World, client: Client, tables: readonly WorldTable[]): Promise<void> {
  const { random } = world;
  const points: string[] = [];
  for (let i = random.between(1, 6); i > 0; i -= 1) {
    const kind = random.below(10);
    if (kind < 6 || tables.length === 0) await changeRows(world, client, random.pick(tables), tables);
    else if (kind < 8) {
      const name = random.pick(['s1', 'S2', '`a b`', '`größe`', '`c``d`']);
      if ((await client.attempt(`SAVEPOINT ${name}`)) === 0) points.push(name);
    } else if (points.length > 0) {
      const name = random.pick(points);
      await client.attempt(
        random.chance(0.8) ? `ROLLBACK TO ${random.pick(['', 'SAVEPOINT '])}${name}` : `RELEASE SAVEPOINT ${name}`,
      );
    }
    // between the statements of an open transaction, others commit theirs
    if (random.chance(0.15)) {
      const other = world.pick();
      if (other !== undefined) await changeRows(world, world.keeper, other);
    }
  }
}

async function transaction(world: World): Promise<void> {
  const { random, main } = world;
  const tables = take(world);
  if (tables.length === 0) return;
  await holding(world, tables, async () => {
    await main.attempt(random.pick(['BEGIN', 'START TRANSACTION', 'START TRANSACTION WITH CONSISTENT SNAPSHOT']));
    await steps(world, main, tables);
    await main.attempt(random.chance(0.7) ? 'COMMIT' : 'ROLLBACK');
  });
}

async function xa(world: World): Promise<void> {
  const { random, main } = world;
  const tables = take(world);
  if (tables.length === 0) return;
  const xid = `'x${world.home}-${world.next()}'${random.pick(['', ",'branch'", ",'',7", ",x'00ff27',123456"])}`;
  await holding(world, tables, async () => {
    if ((await main.attempt(`XA START ${xid}`)) !== 0) return;
    try {
      await steps(world, main, tables);
      await main.attempt(`XA END ${xid}`);
      const end = random.below(10);
      if (end < 2) await main.attempt(`XA COMMIT ${xid} ONE PHASE`);
      else if (end < 3) await main.attempt(`XA ROLLBACK ${xid}`);
      else if ((await main.attempt(`XA PREPARE ${xid}`)) === 0) {
        await meanwhile(world);
        await main.attempt(`${random.chance(0.7) ? 'XA COMMIT' : 'XA ROLLBACK'} ${xid}`);
      }
    } finally {
      // whatever state a failure left behind: a prepared transaction outlives its session
      await main.attempt(`XA END ${xid}`);
      await main.attempt(`XA ROLLBACK ${xid}`);
    }
  });
}

/** What others do while an XA transaction is prepared. */
async function meanwhile(world: World): Promise<void> {
  const { random, keeper } = world;
  for (let i = random.below(3); i > 0; i -= 1) {
    const other = world.pick();
    if (other !== undefined) await changeRows(world, keeper, other);
    if (random.chance(0.2)) await world.checkpoint();
    if (random.chance(0.2)) await keeper.attempt('FLUSH BINARY LOGS');
  }
}

export const transactionActions: readonly Action[] = [
  { name: 'single', weight: 30, run: single },
  { name: 'transaction', weight: 14, run: transaction },
  { name: 'xa', weight: 4, run: xa },
];
