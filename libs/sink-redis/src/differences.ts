/** What is wrong with a stored row, in the words that people read. */
import { fieldDigests } from './digests.ts';
import type { StoredForm } from './mapper.ts';

/** What the digest script says of one row, looked at closely. */
export type FoundRow = readonly [
  type: string,
  /** Below zero: it does not expire. */
  millisecondsToLive: number,
  /** The digests of the fields that were asked for; of a row as JSON, the text itself. Empty where the key has another type. */
  values: readonly string[],
  /** Of a hash that was written in another shape: those of others may stand in one that was not. */
  fieldNames: readonly string[],
];

const TOO_MUCH = '(should not be there)';

/** Names of fields, with a word behind them where the name alone does not say it; empty when the row is right. */
export function differencesOf(form: StoredForm, found: FoundRow, expires: boolean): readonly string[] {
  const [type, millisecondsToLive, values, fieldNames] = found;
  if (type !== (form.kind === 'string' ? 'string' : 'hash')) return [`the key holds a ${type}`];
  const differences =
    form.kind === 'string' ? ofJson(String(form.text), values[0] ?? '') : ofHash(form, values, fieldNames);
  if (expires || millisecondsToLive < 0) return differences;
  return [...differences, `expires: in ${Math.ceil(millisecondsToLive / 1000)} s (the rule has no ttlSeconds)`];
}

function ofHash(
  form: StoredForm & { readonly kind: 'hash' },
  digests: readonly string[],
  fieldNames: readonly string[],
): readonly string[] {
  const expected = fieldDigests(form);
  const own = new Set(form.fields.map(([name]) => name));
  return [
    ...form.fields.filter((_, at) => digests[at] !== expected[at]).map(([name]) => name),
    ...fieldNames.filter((name) => !own.has(name)).map((name) => `${name} ${TOO_MUCH}`),
  ];
}

function ofJson(expected: string, found: string): readonly string[] {
  if (expected === found) return [];
  const [own, other] = [membersOf(expected), membersOf(found)];
  if (own === null || other === null) return ['the value is no JSON object'];
  const text = (members: ReadonlyMap<string, unknown>, name: string): string | undefined =>
    JSON.stringify(members.get(name));
  const differences = [
    ...[...own.keys()].filter((name) => text(own, name) !== text(other, name)),
    ...[...other.keys()].filter((name) => !own.has(name)).map((name) => `${name} ${TOO_MUCH}`),
  ];
  return differences.length === 0 ? ['the JSON is written otherwise'] : differences;
}

/** Numbers as their text, so that no digit is lost. */
function membersOf(json: string): ReadonlyMap<string, unknown> | null {
  const numbersAsText = json.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) =>
    token.startsWith('"') ? token : `"#${token}"`,
  );
  try {
    const value: unknown = JSON.parse(numbersAsText);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? new Map(Object.entries(value)) : null;
  } catch {
    return null;
  }
}
