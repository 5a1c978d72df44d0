import assert from 'node:assert/strict';
import { assertClean, type Pipeline, runMysync } from '@mysync/harness';

/** Runs `mysync dlq …` and gives what it printed. */
export async function dlq<T>(pipeline: Pipeline, args: readonly string[], expected = 0): Promise<T> {
  const { code, stdout, stderr } = await runMysync(['dlq', ...args, '--json', '--config', pipeline.configFile]);
  assert.equal(code, expected, `${args.join(' ')}: ${stdout}${stderr}`);
  assertClean(stderr, []);
  return JSON.parse(stdout) as T;
}
