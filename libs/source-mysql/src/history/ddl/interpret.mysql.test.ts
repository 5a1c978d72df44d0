import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Charsets } from '../../schema/charsets.ts';
import { ServerSession } from '../../server/session.ts';
import { FLAVORS, TestDatabase } from '../../testing.fixture.ts';
import { readDefinition, withStorableMembers } from '../catalogue.ts';
import { isWhole, type TableDefinition } from '../definition.ts';
import { Undecided } from './ddl-words.ts';
import { type DdlSetting, interpret, stateKey, type TableState } from './interpret.ts';
import { Dice, quote, RandomDdl } from './random-ddl.fixture.ts';

const CHAINS = Number(process.env['DDL_CHAINS'] ?? 60);
const FIRST = Number(process.env['DDL_SEED'] ?? 1);
const STATEMENTS = 12;

/** What matters of a definition, in a form that can be compared; what the table map decides is taken from the catalogue. */
function essence(definition: TableDefinition, catalogue: TableDefinition): unknown {
  const columns = definition.columns.map((column, i) => ({
    ...column,
    nullable: column.nullable ?? catalogue.columns[i]?.nullable,
  }));
  const notNull = new Set(columns.filter((column) => column.nullable === false).map((column) => column.name));
  const namesRows = (key: TableDefinition['keys'][number]): boolean =>
    key.parts.every((part) => isWhole(part) && notNull.has(part.column));
  const primary = definition.keys.filter((key) => key.kind === 'primary');
  return {
    columns,
    charset: definition.charset,
    primary,
    // with a primary key nobody asks for another
    unique: primary.length > 0 ? [] : definition.keys.filter((key) => key.kind === 'unique' && namesRows(key)),
    // of other keys the server makes up a prefix where they are too long
    keys: definition.keys
      .map((key) => ({
        ...key,
        parts: key.parts.map((part) => (key.kind === 'other' ? part.column : [part.column, isWhole(part)])),
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

for (const flavor of FLAVORS) {
  describe(`${flavor}: the interpreter of DDL`, () => {
    it('comes to the definition that the catalogue has', async (t) => {
      await using db = await TestDatabase.create(flavor);
      const session = await ServerSession.open(
        { user: 'mysync', password: 'mysync', tls: undefined, connectionTimeoutMs: 10_000 },
        { host: '127.0.0.1', port: db.port },
      );
      t.after(() => session.close());
      const names = await Charsets.load(session);
      const setting: DdlSetting = {
        flavor,
        versionNumber: session.facts.versionNumber,
        foldsNames: false,
        names,
        sqlMode: 0,
        database: db.name,
        databaseCharset: () => 'utf8mb4',
      };
      let decided = 0;
      let undecided = 0;
      const reasons = new Map<string, number>();
      for (let seed = FIRST; seed < FIRST + CHAINS; seed += 1) {
        const dice = new Dice(seed);
        const random = new RandomDdl(dice, flavor);
        const table = dice.pick(['t', 'T.x', 'q`y']);
        const ref = { database: db.name, table };
        let state: TableState = { kind: 'gone' };
        for (let n = 0; n < STATEMENTS; n += 1) {
          const statement: string =
            state.kind === 'known' ? random.alter(table, state.definition) : random.create(table);
          if (
            !(await db.sql.query(statement).then(
              () => true,
              () => false,
            ))
          )
            continue;
          const catalogue = await readDefinition(session, ref);
          assert.ok(catalogue !== undefined);
          try {
            const before: TableState = state as TableState;
            const after: TableState | undefined = interpret(statement, setting, () => before).get(stateKey(ref));
            assert.ok(after?.kind === 'known', statement);
            const definition = await withStorableMembers(session, after.definition);
            assert.deepEqual(
              essence(definition, catalogue),
              essence(catalogue, catalogue),
              `seed ${seed}: ${statement}`,
            );
            state = { kind: 'known', definition };
            decided += 1;
          } catch (error) {
            if (!(error instanceof Undecided)) throw error;
            undecided += 1;
            reasons.set(`${error.message}: ${statement}`, 1);
            state = { kind: 'known', definition: catalogue };
          }
        }
        await db.run(`DROP TABLE IF EXISTS ${quote(table)}`);
      }
      t.diagnostic(`${decided} statements decided, ${undecided} not`);
      for (const reason of reasons.keys()) t.diagnostic(reason);
      assert.ok(decided > CHAINS * 2, `only ${decided} statements were taken`);
      assert.ok(undecided * 20 < decided, `${undecided} undecided of ${decided}`);
    });
  });
}
