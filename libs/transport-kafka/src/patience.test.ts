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
  const onTrouble = (trouble: string): void => {
    told.push(trouble);
  };
  assert.equal(await patiently({ what: 'the leader', onTrouble }, failing(3)), 'done');
  assert.deepEqual(
    told.map((trouble) => trouble.replace(/:.*, /, ': ')),
    ['waiting for the leader: 2 to go', 'waiting for the leader: 1 to go', 'waiting for the leader: 0 to go'],
  );
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
