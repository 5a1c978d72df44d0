import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LogCursor } from './log-position.ts';

describe('the place in the log', () => {
  it('follows the offsets that events tell', () => {
    const cursor = new LogCursor('b.1', 4);
    assert.equal(cursor.pass(100, 104), 4);
    assert.equal(cursor.pass(50, 300), 250);
    assert.equal(cursor.offset, 300);
  });

  it('counts along where they do not tell', () => {
    const cursor = new LogCursor('b.1', 1000);
    assert.equal(cursor.pass(50, 0), 1000);
    assert.equal(cursor.pass(50, 0), 1050);
    assert.equal(cursor.offset, 1100);
  });

  it('goes on beyond 4 GiB, where only 32 bits are told', () => {
    const cursor = new LogCursor('b.1', 2 ** 32 - 10);
    cursor.pass(100, 90);
    assert.equal(cursor.offset, 2 ** 32 + 90);
    cursor.pass(100, 190);
    assert.equal(cursor.offset, 2 ** 32 + 190);
    cursor.moveTo('b.2', 4);
    cursor.pass(100, 104);
    assert.equal(cursor.offset, 104);
  });
});
