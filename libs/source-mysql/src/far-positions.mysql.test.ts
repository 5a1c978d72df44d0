/**
 * Recorded logs of both servers with their positions rewritten: E1, the zero end positions of MariaDB 11.4 and later (all but a transaction's first and
 * last event tell none; a real 11.8 is cut off in `cut-off.mysql.test.ts`), and files past 4 GiB (events tell 32 bits).
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { compareBinlogPositions } from '@mysync/core';
import { EVENT } from './binlog/column-types.ts';
import type { SourceItem } from './port.ts';
import { FILE, NEXT_OFFSET_AT, RecordedLog, type Unit } from './recorded-log.fixture.ts';
import { FLAVORS } from './testing.fixture.ts';

const TWO_32 = 2 ** 32;
/** What says itself where it goes. */
const isRotate = (event: Buffer): boolean => event[4] === EVENT.ROTATE;

/** The unit as it would stand in a file from `offset` on. */
function placed(unit: Unit, offset: number): { events: Buffer[]; end: number } {
  let at = offset;
  const events = unit.map((event) => {
    const copy = Buffer.from(event);
    at += event.length;
    copy.writeUInt32LE(at % TWO_32, NEXT_OFFSET_AT);
    return copy;
  });
  return { events, end: at };
}

/** A message names its transaction and its place, so both must be right for all of it to be equal. */
function told(items: readonly SourceItem[]): unknown[] {
  return items.map((item) =>
    item.kind === 'row'
      ? { kind: 'row', key: Buffer.from(item.key).toString('hex'), payload: Buffer.from(item.payload).toString('hex') }
      : item,
  );
}

for (const flavor of FLAVORS) {
  describe(`positions of ${flavor}`, { timeout: 170_000 }, () => {
    let log: RecordedLog;
    before(async () => {
      log = await RecordedLog.create(flavor);
    });
    after(async () => {
      await log?.close();
    });

    it('E1: zero end positions inside of transactions change nothing', async () => {
      const book = log.newBook();
      let zeros = 0;
      for (const unit of log.units) {
        const events = placed(unit, 4).events;
        const plain = told(await log.read([log.format, ...events], book));
        const zeroed = events.map((event, i) => {
          if (i === 0 || i === events.length - 1 || isRotate(event)) return event;
          zeros += 1;
          const copy = Buffer.from(event);
          copy.writeUInt32LE(0, NEXT_OFFSET_AT);
          return copy;
        });
        assert.deepEqual(told(await log.read([log.format, ...zeroed], book)), plain);
      }
      assert.ok(zeros > 20);
    });

    it('files past 4 GiB: positions go on, in order and whole', async () => {
      const book = log.newBook();
      /** Where transactions begin and end, counted from where reading began. */
      const places = async (start: number): Promise<readonly string[]> => {
        let offset = start;
        const events: Buffer[] = [log.format];
        for (const unit of log.units) {
          const far = placed(
            unit.filter((event) => !isRotate(event)),
            offset,
          );
          events.push(...far.events);
          offset = far.end;
        }
        const found: string[] = [];
        let last = { file: FILE, offset: start };
        for (const item of await log.read(events, book, start)) {
          if (item.kind === 'begin') found.push(`begin ${item.id.offset - start}`);
          if (item.kind !== 'commit') continue;
          found.push(`commit ${item.position.offset - start}`);
          assert.ok(compareBinlogPositions(item.position, last) > 0);
          last = item.position;
        }
        return found;
      };
      const near = await places(4);
      assert.ok(near.length > 10);
      // across the border, and far beyond it
      for (const start of [TWO_32 - 3000, TWO_32 - 1, TWO_32 * 3 + 5]) assert.deepEqual(await places(start), near);
    });
  });
}
