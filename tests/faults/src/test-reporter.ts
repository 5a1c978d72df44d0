import type { TestEvent } from 'node:test/reporters';

/** What the runner of mutations reads of a test that ended. */
export interface TestEnd {
  readonly name: string;
  /** `found`: an assertion did not hold; `error`: it ended by anything else, which says nothing of what it tests. */
  readonly end: 'passed' | 'found' | 'error';
}

/** A reporter of node:test that prints each test that ended as a line of JSON. */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type === 'test:pass') yield line({ name: data.name, end: 'passed' });
    // a test whose parts failed has nothing of its own to say
    if (type !== 'test:fail' || failureOf(data.details.error) === 'subtestsFailed') continue;
    const { cause } = data.details.error;
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    yield line({ name: data.name, end: code === 'ERR_ASSERTION' ? 'found' : 'error' });
  }
}

function failureOf(error: Error): unknown {
  return 'failureType' in error ? error.failureType : undefined;
}

function line(end: TestEnd): string {
  return `${JSON.stringify(end)}\n`;
}
