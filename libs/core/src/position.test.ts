import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { isMysyncError } from './errors.ts';
import { compareBinlogPositions, formatBinlogPosition, parseBinlogPosition } from './position.ts';

describe('positions in the log', () => {
  it('E7: are ordered by the number of their file, also past the millionth, then by offset', () => {
    const inOrder = [
      'b.999999:4',
      'b.999999:99',
      'b.1000000:4',
      'b.1000001:5',
      'b.10000000:4',
      'b.10000000:4294967300',
    ];
    const shuffled = fc.shuffledSubarray(inOrder, { minLength: inOrder.length });
    fc.assert(
      fc.property(shuffled, (texts) => {
        const sorted = texts.map(parseBinlogPosition).sort(compareBinlogPositions).map(formatBinlogPosition);
        assert.deepEqual(sorted, inOrder);
      }),
    );
    // whatever the zeros in front, and whatever the base name
    assert.ok(compareBinlogPositions({ file: 'b.000002', offset: 9 }, { file: 'b.10', offset: 4 }) < 0);
    assert.ok(
      compareBinlogPositions({ file: 'my.log-1.000010', offset: 4 }, { file: 'my.log-1.000009', offset: 4 }) > 0,
    );
  });

  it('read back what they print, to the last safe offset, and refuse the rest', () => {
    for (const text of ['binlog.000001:4', 'a:b.000001:4', 'b.1000000:4294967296', `b.1:${2 ** 53 - 1}`]) {
      assert.equal(formatBinlogPosition(parseBinlogPosition(text)), text);
    }
    for (const text of ['', 'b', 'b.1', 'b:4', 'b.1:', 'b.1:-1', 'b.1:4.5', `b.1:${2n ** 53n}`, 'b.x:4', '.:4']) {
      assert.throws(
        () => parseBinlogPosition(text),
        (error) => isMysyncError(error, 'POSITION_INVALID'),
        text,
      );
    }
  });
});
