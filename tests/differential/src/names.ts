/** Names that are hard to read: made unique by a number, at either end. */
import type { Random } from './random.ts';

const PLAIN = ['t', 'orders', 'item', 'c', 'value', 'Name', 'UPPER', 'snake_case', '$x', 'select', 'table', 'rename'];
const ODD = [
  'a b',
  'a.b',
  'a-b',
  "it's",
  'say "x"',
  'tick`y',
  'back\\slash',
  'semi;colon',
  'größe',
  '列',
  'Ünï',
  'таблица',
  '1e5',
  '1',
  '#hash',
  '-- dashes',
  '/*x*/',
  '/*!50000 y*/',
  'rename to z',
  ' lead',
  '@at',
  'a,b',
  '(p)',
  '%s',
  '100%',
  'é',
];

export function randomName(random: Random, number: number): string {
  const base = random.chance(0.5) ? random.pick(PLAIN) : random.pick(ODD);
  const text = random.chance(0.7) ? `${base}${number}` : `${number}${base}`;
  if (random.chance(0.04)) return `${text}${'x'.repeat(64)}`.slice(0, 64);
  return random.chance(0.1) ? text.toUpperCase() : text;
}
