/** A secret never gets into anything that is printed, wherever it was written and whatever else is wrong. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { format, inspect } from 'node:util';
import fc from 'fast-check';
import { type LoadOptions, loadConfig, printConfig, redactedConfig, Secret, takeFlags } from './index.ts';

const FILE = (password: string, more = ''): string => `
sources:
  shop:
    hosts: ['127.0.0.1:3306']
    user: mysync
    password: ${password}
    tables: ['shop.*']
${more}`;

/** Long enough not to stand in a message by chance; with what YAML, URLs and shells find special. */
const secrets = fc
  .string({ unit: fc.constantFrom(...'abcXYZ019 :/@#"\'{}[]*&!%,?|>\\=$-ü✓'), minLength: 3, maxLength: 20 })
  .map((text) => `s3Cr${text}eTq`);

const PLACES: readonly ((secret: string) => LoadOptions)[] = [
  (secret) => ({ text: FILE(JSON.stringify(secret)) }),
  (secret) => ({ text: FILE(JSON.stringify(secret), 'transport: { kind: wrong }') }),
  (secret) => ({ text: FILE(secret) }),
  (secret) => ({ text: FILE(`*${secret}`) }),
  (secret) => ({ text: FILE(`!${secret} x`) }),
  (secret) => ({ text: FILE(`"${secret}`) }),
  (secret) => ({ text: FILE(`\n  - ${secret}`) }),
  (secret) => ({ text: FILE(`[${JSON.stringify(secret)}]`) }),
  (secret) => ({ text: FILE(`{ wrong: ${JSON.stringify(secret)} }`) }),
  (secret) => ({ text: FILE('x', `    pasword: ${JSON.stringify(secret)}`) }),
  (secret) => ({ text: FILE('x', `transport: { kafka: { sasl: ${JSON.stringify(secret)} } }`) }),
  (secret) => ({
    text: FILE('x', `transport: { kafka: { sasl: { username: u, password: ${JSON.stringify(secret)} } } }`),
  }),
  (secret) => ({
    text: FILE(
      'x',
      `sinks: { c: { kind: redis, url: ${JSON.stringify(`redis://u:${secret}@h:1`)}, tables: [{ match: a.b }] } }`,
    ),
  }),
  (secret) => ({
    text: FILE(
      'x',
      `sinks: { c: { kind: redis, hosts: ${JSON.stringify(`u:${secret}@h:1`)}, tables: [{ match: a.b }] } }`,
    ),
  }),
  (secret) => ({
    text: FILE(
      'x',
      `sinks: { s: { kind: elasticsearch, nodes: ['http://e:1'], auth: ${JSON.stringify(secret)}, tables: [{ match: a.b }] } }`,
    ),
  }),
  (secret) => ({ text: FILE('{ env: PW }'), environment: { PW: secret } }),
  (secret) => ({ text: FILE('{ env: PW }'), environment: { PW: 'x', MYSYNC_SOURCES_SHOP_PASSWORD: secret } }),
  (secret) => ({ text: FILE('{ env: PW }'), environment: { PW: 'x', MYSYNC_SOURCES_SHOP_PASWORD: secret } }),
  (secret) => ({ text: FILE('x'), settings: [`sources.shop.password=${secret}`] }),
  (secret) => ({ text: FILE('x'), settings: [`sources.shop.pasword=${secret}`] }),
  (secret) => ({ text: FILE('x'), settings: [`transport.kafka.sasl=${secret}`] }),
];

/** Everything that could be printed of a load. */
function printed(options: LoadOptions): string {
  const result = loadConfig({ path: 'mysync.yaml', environment: {}, ...options });
  const problems = result.ok ? [] : result.problems;
  const texts = [...problems, ...result.warnings].flatMap((problem) => [
    problem.toString(),
    problem.message,
    JSON.stringify(problem),
    inspect(problem, { depth: 20 }),
  ]);
  if (result.ok) {
    const { config } = result;
    texts.push(printConfig(config), JSON.stringify(redactedConfig(config)), JSON.stringify(config));
    texts.push(inspect(config, { depth: 20, showHidden: true }), format('%o %j', config, config));
  }
  return texts.join('\n');
}

for (const [index, place] of PLACES.entries()) {
  test(`place ${index}: ${place.toString().replace(/\s+/g, ' ').slice(0, 100)}`, () => {
    fc.assert(
      fc.property(secrets, (secret) => {
        const text = printed(place(secret));
        assert.ok(text.length > 0);
        assert.ok(!text.includes(secret), text);
        assert.ok(!text.includes(JSON.stringify(secret).slice(1, -1)), text);
      }),
      { numRuns: 60 },
    );
  });
}

test('a secret turns into text in no way but reveal', () => {
  const secret = new Secret('hidden');
  const texts = [
    String(secret),
    `${secret}`,
    `a${secret as unknown as string}`,
    JSON.stringify({ secret }),
    inspect(secret, { showHidden: true }),
    inspect({ deep: [secret] }, { depth: 9 }),
    format('%s %o %O %j', secret, secret, secret, secret),
    JSON.stringify(Object.entries(secret)),
  ];
  for (const text of texts) assert.ok(!text.includes('hidden'), text);
  assert.equal(secret.reveal(), 'hidden');
});

test('flags are taken out of a command line, the rest stays', () => {
  assert.deepEqual(takeFlags(['run', '-c', 'f', '--a.b=1', '--set', 'c.d=2', '--set=e=3', '--json', '--', '--x.y=1']), {
    settings: ['a.b=1', 'c.d=2', 'e=3'],
    rest: ['run', '-c', 'f', '--json', '--', '--x.y=1'],
  });
});
