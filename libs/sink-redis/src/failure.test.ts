import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openingFailure, redisFailure, replyCode } from './failure.ts';
import { parseAddress, SlotMap } from './slot-map.ts';

function reply(message: string): Error {
  const error = new Error(message);
  error.name = 'ReplyError';
  return error;
}

test('Redis errors by their code: again later, or never', () => {
  for (const [message, code, retriable] of [
    ['LOADING Redis is loading the dataset in memory', 'SINK_UNREACHABLE', true],
    ['READONLY You can’t write against a read only replica.', 'SINK_UNREACHABLE', true],
    ['CLUSTERDOWN The cluster is down', 'SINK_UNREACHABLE', true],
    ["OOM command not allowed when used memory > 'maxmemory'.", 'SINK_OVERLOADED', true],
    ['BUSY Redis is busy running a script.', 'SINK_OVERLOADED', true],
    ['MISCONF Redis is configured to save RDB snapshots', 'SINK_OVERLOADED', true],
    ['WRONGPASS invalid username-password pair or user is disabled.', 'SINK_DENIED', true],
    ['NOAUTH Authentication required.', 'SINK_DENIED', true],
    ["NOPERM this user has no permissions to run the 'evalsha' command", 'SINK_DENIED', true],
    ['ERR something new', 'REDIS_REPLY_UNEXPECTED', false],
    [
      'ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): @user_script:7: OOM command not allowed',
      'SINK_OVERLOADED',
      true,
    ],
  ] as const) {
    const error = redisFailure(reply(message), 'h:1');
    assert.deepEqual([error.code, error.retriable], [code, retriable], message);
  }
  assert.equal(redisFailure(new Error('connect ECONNREFUSED 127.0.0.1:1'), 'h:1').code, 'SINK_UNREACHABLE');
  assert.equal(replyCode(new Error('')), '');
});

test('what keeps a connection from being opened passes', () => {
  for (const [message, code, retriable] of [
    ['ERR max number of clients reached', 'SINK_UNREACHABLE', true],
    ['LOADING Redis is loading the dataset in memory', 'SINK_UNREACHABLE', true],
    ['WRONGPASS invalid username-password pair or user is disabled.', 'SINK_DENIED', true],
    ['NOAUTH HELLO must be called with the client already authenticated', 'SINK_DENIED', true],
  ] as const) {
    const error = openingFailure(reply(message), 'h:1');
    assert.deepEqual([error.code, error.retriable], [code, retriable], message);
    assert.match(error.message, new RegExp(`^Redis at h:1: ${message.slice(0, 10)}`));
  }
});

test('an error does not carry the arguments that ioredis keeps on its own', () => {
  const original = Object.assign(reply('WRONGPASS no'), {
    command: { name: 'hello', args: ['3', 'AUTH', 'x', 'geheim'] },
  });
  const error = redisFailure(original, 'h:1');
  assert.equal(error.cause, undefined);
  assert.doesNotMatch(`${error} ${JSON.stringify(error)} ${error.stack}`, /geheim/);
});

test('slot maps and redirections name nodes, also without a host', () => {
  const asked = { host: 'seed', port: 7000 };
  const map = SlotMap.parse(
    [
      [0, 99, ['', 7001, 'id1', []], ['10.0.0.9', 7009, 'r', []]],
      [100, 16000, ['10.0.0.2', 7002, 'id2', []]],
      [16001, 16383, ['', 7001, 'id1', []]],
    ],
    asked,
  );
  assert.deepEqual(
    map.masters.map((master) => [master.name, master.lowestSlot]),
    [
      ['seed:7001', 0],
      ['10.0.0.2:7002', 100],
    ],
  );
  assert.equal(map.owner(16383)?.name, 'seed:7001');
  assert.equal(map.owner(100)?.name, '10.0.0.2:7002');
  assert.deepEqual(parseAddress('::1:7001', asked), { host: '::1', port: 7001 });
  assert.deepEqual(parseAddress(':7001', asked), { host: 'seed', port: 7001 });
});
