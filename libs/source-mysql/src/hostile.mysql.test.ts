/**
 * Damaged bytes of real logs, through everything between socket and items: an error with its place, never a hang, a crash, memory without bound, or
 * bytes that are not the event's. With checksums every flip is found; without, the events are cut, flipped and overwritten at will.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isMysyncError } from '@mysync/core';
import fc from 'fast-check';
import { EVENT } from './binlog/column-types.ts';
import { EventFrames } from './connection/event-frames.ts';
import type { SourceItem } from './port.ts';
import { CANARY, CHECKSUM_BYTES, HEADER_BYTES, RecordedLog, type Unit } from './recorded-log.fixture.ts';
import { FLAVORS, rowsOf } from './testing.fixture.ts';

const RUNS = 4000;
const MOST_RISE_BYTES = 300 << 20;

type Damage =
  | { readonly kind: 'cut'; readonly at: number }
  | { readonly kind: 'flip'; readonly at: number; readonly bit: number }
  | { readonly kind: 'overwrite'; readonly at: number; readonly bytes: Uint8Array }
  | { readonly kind: 'replace'; readonly bytes: Uint8Array }
  | { readonly kind: 'append'; readonly bytes: Uint8Array };

const place = fc.nat({ max: 0xffff });
const damages: fc.Arbitrary<Damage> = fc.oneof(
  fc.record({ kind: fc.constant('cut' as const), at: place }),
  fc.record({ kind: fc.constant('flip' as const), at: place, bit: fc.nat({ max: 7 }) }),
  fc.record({
    kind: fc.constant('overwrite' as const),
    at: place,
    bytes: fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 9 }),
      // absurd lengths and counts
      fc
        .constantFrom(
          ...['ff', 'ffff', 'ffffffff', 'feffffffffffffff7f', 'fcffff', 'fdffffff', '00', '0000', '80ffffff'],
        )
        .map((hex) => Buffer.from(hex, 'hex')),
    ),
  }),
  fc.record({ kind: fc.constant('replace' as const), bytes: fc.uint8Array({ maxLength: 300 }) }),
  fc.record({ kind: fc.constant('append' as const), bytes: fc.uint8Array({ minLength: 1, maxLength: 40 }) }),
);

/** The length in the header fits what came, unless the header itself was hit: a packet is as long as it is. */
function damaged(event: Buffer, damage: Damage): Buffer {
  const body = event.subarray(HEADER_BYTES);
  const withBody = (...parts: readonly Uint8Array[]): Buffer => {
    const whole = Buffer.concat([event.subarray(0, HEADER_BYTES), ...parts]);
    whole.writeUInt32LE(whole.length, 9);
    return whole;
  };
  switch (damage.kind) {
    case 'cut':
      return withBody(body.subarray(0, damage.at % Math.max(body.length, 1)));
    case 'flip': {
      const copy = Buffer.from(event);
      // the low bits hit the start of the event more often: lengths and counts stand there
      const at = damage.at % (damage.at % 3 === 0 ? Math.min(event.length, 80) : event.length);
      copy[at] = (copy[at] as number) ^ (1 << damage.bit);
      return copy;
    }
    case 'overwrite': {
      const at = damage.at % (damage.at % 3 === 0 ? Math.min(body.length, 80) : Math.max(body.length, 1));
      return withBody(body.subarray(0, at), damage.bytes, body.subarray(at + damage.bytes.length));
    }
    case 'replace':
      return withBody(damage.bytes);
    case 'append':
      return withBody(body, damage.bytes);
  }
}

for (const flavor of FLAVORS) {
  describe(`damaged logs of ${flavor}`, { timeout: 600_000 }, () => {
    let log: RecordedLog;
    before(async () => {
      log = await RecordedLog.create(flavor);
    });
    after(async () => {
      await log?.close();
    });

    function assertOwnBytes(items: readonly SourceItem[]): void {
      for (const item of items) {
        if (item.kind === 'row') {
          for (const bytes of [item.payload, item.key]) {
            assert.equal(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(CANARY), false);
          }
        } else if ('statement' in item) assert.equal(item.statement.includes(CANARY), false);
      }
      // every message can be read
      rowsOf(items);
    }

    it('are read whole when they are whole', async () => {
      const book = log.newBook();
      let rows = 0;
      const types = new Set<number>();
      for (const events of log.units) {
        const items = await log.read([log.format, ...events], book);
        assertOwnBytes(items);
        rows += rowsOf(items).length;
        for (const event of events) types.add(event[4] as number);
      }
      assert.ok(rows > 12, `${rows} rows`);
      assert.ok(types.size > 10, [...types].join());
    });

    it('with checksums: every flip of a bit is found', () => {
      const checked = new EventFrames();
      const withSums = Buffer.from(log.format);
      withSums[withSums.length - CHECKSUM_BYTES - 1] = 1;
      checked.read(withSums, 0, withSums.length);
      fc.assert(
        fc.property(fc.nat(), fc.nat(), (which, where) => {
          const event = Buffer.from(log.withChecksums[which % log.withChecksums.length] as Buffer);
          const bit = where % (event.length * 8);
          event[bit >> 3] = (event[bit >> 3] as number) ^ (1 << (bit & 7));
          try {
            checked.read(event, 0, event.length);
          } catch (error) {
            assert.ok(isMysyncError(error, 'SOURCE_EVENT_UNREADABLE'), String(error));
            return;
          }
          assert.fail(`a flip of bit ${bit} of an event of type ${event[4]} went through`);
        }),
        { numRuns: 20_000 },
      );
    });

    it('with checksums: every flip in the format with which reading begins is found by its next event', () => {
      const format = Buffer.from(log.format);
      format[format.length - CHECKSUM_BYTES - 1] = 1;
      for (let bit = 0; bit < format.length * 8; bit += 1) {
        const bad = Buffer.from(format);
        bad[bit >> 3] = (bad[bit >> 3] as number) ^ (1 << (bit & 7));
        const frames = new EventFrames();
        const [event] = log.withChecksums as [Buffer];
        assert.throws(
          () => {
            frames.read(bad, 0, bad.length);
            frames.read(event, 0, event.length);
          },
          (error) => isMysyncError(error, 'SOURCE_EVENT_UNREADABLE'),
          `bit ${bit}`,
        );
      }
    });

    it('without: an error with its place, or what stands in the event', async () => {
      const book = log.newBook();
      const rssAtStart = process.memoryUsage.rss();
      let refused = 0;
      let mostRss = 0;
      /** One of each kind. */
      const wrong = new Map<string, string>();
      await fc.assert(
        fc.asyncProperty(fc.nat(), fc.nat(), damages, async (which, event, damage) => {
          const events = log.units[which % log.units.length] as Unit;
          const hit = event % events.length;
          const copy = events.map((bytes, i) => (i === hit ? damaged(bytes, damage) : bytes));
          const isMap = (copy[hit] as Buffer)[4] === EVENT.TABLE_MAP || (events[hit] as Buffer)[4] === EVENT.TABLE_MAP;
          try {
            assertOwnBytes(await log.read([log.format, ...copy], isMap ? log.newBook() : book));
          } catch (error) {
            refused += 1;
            const isClear =
              isMysyncError(error) &&
              error.code.startsWith('SOURCE_') &&
              /:\d+$/.test(String(error.where['position'])) &&
              !String(error).includes(CANARY);
            const { message, stack = '' } = error as Error;
            if (!isClear)
              wrong.set(stack.slice(stack.indexOf('\n')), `${message}: ${JSON.stringify([which, event, damage])}`);
          }
          mostRss = Math.max(mostRss, process.memoryUsage.rss());
        }),
        { numRuns: RUNS },
      );
      assert.deepEqual(new Map(), wrong);
      assert.ok(refused > RUNS / 5, `${refused} of ${RUNS} were refused`);
      assert.ok(mostRss - rssAtStart < MOST_RISE_BYTES, `memory rose by ${(mostRss - rssAtStart) >> 20} MiB`);
    });
  });
}
