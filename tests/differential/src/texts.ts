/** Texts of many scripts, and what is hard in any of them. */
import type { Random } from './random.ts';

const SCRIPTS: readonly (readonly [number, number])[] = [
  [0x20, 0x7e],
  [0x20, 0x7e],
  [0x00, 0x1f],
  [0xa0, 0xff],
  [0x100, 0x17f],
  [0x386, 0x3ce],
  [0x401, 0x45f],
  [0x5d0, 0x5ea],
  [0x620, 0x64a],
  [0xe01, 0xe3a],
  [0x10d0, 0x10f0],
  [0x531, 0x556],
  [0x2010, 0x2044],
  [0x20a0, 0x20bf],
  [0x2500, 0x257f],
  [0x3041, 0x30fe],
  [0x4e00, 0x4fff],
  [0x4e00, 0x9fa5],
  [0xac00, 0xd7a3],
  [0xff01, 0xff9f],
  [0x1f300, 0x1f64f],
  [0x20000, 0x20100],
];
const ODD = [
  '',
  ' ',
  'a ',
  ' a',
  "'",
  '"',
  '\\',
  "\\'",
  '\u0000',
  '\n\r\t\u001a',
  'null',
  'NULL',
  'A',
  'a',
  'Ä',
  'ß',
  'ss',
  'é',
  'e\u0301',
  '～',
  '〜',
  '—',
  '―',
  '¥',
  '€',
  '\ufeff',
  '\uffff',
  '\u{10ffff}',
  '\u2028',
  '{"a": 1.0}',
  '[1,2]',
  '0x00',
  '1e3',
];

export function randomText(random: Random, maxCharacters: number): string {
  if (random.chance(0.25)) return [...random.pick(ODD)].slice(0, maxCharacters).join('');
  const size = random.chance(0.1) ? maxCharacters : random.below(Math.min(maxCharacters, 20) + 1);
  const count = Math.min(size, 300);
  let text = '';
  let script = random.pick(SCRIPTS);
  for (let i = 0; i < count; i += 1) {
    if (random.chance(0.2)) script = random.pick(SCRIPTS);
    text += String.fromCodePoint(random.between(script[0], script[1]));
  }
  return text;
}
