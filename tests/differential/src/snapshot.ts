/** The other way to the rows: a snapshot says the same as the server's SELECT, and the same as the stream, value by value. */
import { formatTableRef, type TableSchema } from '@mysync/core';
import type { BinlogSource } from '@mysync/source-mysql';
import { differences } from './compare.ts';
import { Copy, sameValue } from './copy.ts';
import type { Checkpoint } from './world.ts';

/** At the end of a history, when nothing changes any more. */
export async function compareSnapshot(source: BinlogSource, streamed: Copy, last: Checkpoint): Promise<string[]> {
  const snapshot = await source.snapshot({ onProgress: () => undefined, signal: new AbortController().signal });
  const copy = new Copy();
  try {
    for await (const batch of snapshot.items) for (const item of batch) copy.apply(item);
  } finally {
    await snapshot.close();
  }
  const found: string[] = [];
  for (const table of last.tables) {
    const rows = copy.of(table.ref);
    const others = streamed.of(table.ref);
    const name = formatTableRef(table.ref);
    found.push(...differences(table, rows).map((line) => `snapshot: ${line}`));
    for (const [key, row] of rows) {
      const other = others.get(key);
      if (other === undefined) found.push(`${name}: a row has another key in the snapshot than in the stream`);
      else if (!row.values.every((value, i) => sameValue(value, other.values[i]))) {
        found.push(`${name}: a row has other values in the snapshot than in the stream`);
      } else if (row.partitionHash !== other.partitionHash) found.push(`${name}: a row is in another partition`);
      else if (row.schema.fingerprint !== other.schema.fingerprint) {
        found.push(`${name}: ${schemaDifference(row.schema, other.schema)}`);
      } else continue;
      break;
    }
  }
  return found;
}

function schemaDifference(snapshot: TableSchema, stream: TableSchema): string {
  const columns = snapshot.columns.flatMap((column, i) => {
    const [a, b] = [JSON.stringify(column), JSON.stringify(stream.columns[i])];
    return a === b ? [] : [`${a} in the snapshot, ${b} in the stream`];
  });
  return [`the key rule is ${snapshot.keyRule} in the snapshot, ${stream.keyRule} in the stream`, ...columns].join(
    '; ',
  );
}
