/** An incident: the server says that changes are missing from its log. Servers write it only when they are broken, so it is put into a recorded log. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { EVENT } from './binlog/column-types.ts';
import { FILE, HEADER_BYTES, NEXT_OFFSET_AT, RecordedLog } from './recorded-log.fixture.ts';
import { FLAVORS, failureOf } from './testing.fixture.ts';

const MESSAGE = 'error writing to the binary log';
const LOST_EVENTS = 1;

/** As both servers write it: a number, then a text behind its length. */
function incident(offset: number): Buffer {
  const body = Buffer.concat([Buffer.from([LOST_EVENTS, 0, MESSAGE.length]), Buffer.from(MESSAGE)]);
  const event = Buffer.alloc(HEADER_BYTES + body.length);
  event[4] = EVENT.INCIDENT;
  event.writeUInt32LE(1, 5);
  event.writeUInt32LE(event.length, 9);
  event.writeUInt32LE(offset + event.length, NEXT_OFFSET_AT);
  body.copy(event, HEADER_BYTES);
  return event;
}

for (const flavor of FLAVORS) {
  describe(`an incident in a log of ${flavor}`, { timeout: 120_000 }, () => {
    let log: RecordedLog;
    before(async () => {
      log = await RecordedLog.create(flavor);
    });
    after(async () => {
      await log?.close();
    });

    it('stops the stream with its place, between transactions and inside of one', async () => {
      const book = log.newBook();
      const unit = log.units.find((events) => events.length > 3);
      assert.ok(unit !== undefined);
      for (const before of [0, 1, unit.length - 1, unit.length]) {
        // the events tell where they end in the recorded log
        const offset: number = before === 0 ? 4 : (unit[before - 1]?.readUInt32LE(NEXT_OFFSET_AT) ?? 0);
        const events = [log.format, ...unit.slice(0, before), incident(offset), ...unit.slice(before)];
        const error = await failureOf(log.read(events, book));
        assert.ok(isMysyncError(error, 'SOURCE_EVENT_UNREADABLE'), String(error));
        assert.match(error.message, /an incident: the server says that changes are missing/);
        assert.equal(error.where['position'], `${FILE}:${offset}`);
        assert.match(error.remedy, /snapshot/);
      }
      // without it the same events are read
      await log.read([log.format, ...unit], book);
    });
  });
}
