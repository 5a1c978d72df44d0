import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BrokerError } from './broker-error.ts';
import { patiently } from './patience.ts';
import { CODE } from './protocol/codes.ts';

function failing(times: number): () => Promise<string> {
  let left = times;
  return async () => {
    left -= 1;
    if (left >= 0) throw new BrokerError(CODE.UNKNOWN_TOPIC_OR_PARTITION, `${left} to go`);
    return 'done';
  };
}

test('what is waited for without end says at each failure why it waits', async () => {
  const told: string[] = [];
  assert.equal(
    await patiently({ what: 'the leader', onTrouble: (trouble) => void told.push(trouble) }, failing(3)),
    'done',
  );
  assert.equal(told.length, 3);
  for (const trouble of told) assert.match(trouble, /^waiting for the leader: .*\d to go$/);
});

test('with a limit the last failure is thrown behind it, under the name of what was waited for', async () => {
  await assert.rejects(patiently({ what: 'the leader', limitMs: 50 }, failing(1000)), {
    code: 'TRANSPORT_UNREACHABLE',
    message: /^the leader: /,
  });
});

test('what does not pass is thrown at once', async () => {
  const final = new Error('no');
  const refuse = (): Promise<never> => Promise.reject(final);
  await assert.rejects(patiently({ what: 'it', onTrouble: () => assert.fail('told') }, refuse), final);
});
