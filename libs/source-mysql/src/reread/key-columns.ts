/** Whether rows of two versions of a table are named alike, so that a name of the one can be looked up in the other. */
import type { Column, TableSchema } from '@mysync/core';

const INTEGER = /^(?:tiny|small|medium|big)?int(?: unsigned)?$/;
const TEXT = /^(?:var)?char\(\d+\)$/;

export function sameKeyColumns(before: TableSchema, now: TableSchema): boolean {
  const [old, fresh] = [keyOf(before), keyOf(now)];
  return (
    old.length > 0 &&
    old.length === fresh.length &&
    old.every((column, i) => column.name === fresh[i]?.name && sameValues(column, fresh[i]))
  );
}

function keyOf(schema: TableSchema): readonly Column[] {
  return schema.columns.filter((column) => column.keyPosition > 0).sort((a, b) => a.keyPosition - b.keyPosition);
}

/** A value of the one column stands in a key as it would as a value of the other. */
function sameValues(before: Column, now: Column): boolean {
  if (before.type === now.type) return true;
  return [INTEGER, TEXT].some((form) => form.test(before.type) && form.test(now.type));
}
