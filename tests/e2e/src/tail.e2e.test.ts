/** `mysync tail --from OFFSET` around the end of the log, on both transports. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pipeline, runMysync } from '@mysync/harness';

for (const transport of ['log', 'kafka'] as const) {
  test(`${transport}: an offset beyond the end is refused with the end, the end itself is not`, async () => {
    await using pipeline = await Pipeline.create({ transport, sinks: ['redis'], partitions: 2 });
    const { sql } = pipeline;
    await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v INT)');
    // both partitions get rows, of different numbers
    await sql.query('INSERT INTO t VALUES ?', [Array.from({ length: 51 }, (_, id) => [id, id])]);
    const mysync = pipeline.start('run');
    await pipeline.equal(['t']);
    await pipeline.stopped(mysync);
    const tail = (...args: string[]) => runMysync(['tail', ...args, '--config', pipeline.configFile]);
    const messages = (await tail()).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const last = (partition: number): number =>
      Math.max(...messages.filter((each) => each.partition === partition).map(({ offset }) => offset));

    const all = await tail('--from', '99999999');
    assert.equal(all.code, 2);
    assert.equal(all.stdout, '');
    assert.match(all.stderr, /^COMMAND_VALUE_INVALID: no partition of topic '\S+' reaches offset 99999999\n/);
    assert.match(all.stderr, /\d+ in partition 0, \d+ in partition 1/);
    const ends = [0, 1].map((partition) =>
      Number(new RegExp(`(\\d+) in partition ${partition}`).exec(all.stderr)?.[1]),
    );
    for (const [partition, end = 0] of ends.entries()) {
      assert.ok(end > last(partition));
      const one = await tail('--partition', String(partition), '--from', String(end + 1), '--follow');
      assert.equal(one.code, 2, one.stderr);
      assert.match(
        one.stderr,
        new RegExp(`COMMAND_VALUE_INVALID: partition ${partition} of topic .* does not reach offset ${end + 1}\n`),
      );
      const at = await tail('--partition', String(partition), '--from', String(end));
      assert.deepEqual([at.code, at.stdout, at.stderr], [0, '', '']);
    }
    // what one partition does not reach, the other shows
    const longer = last(0) > last(1) ? 0 : 1;
    const shown = await tail('--from', String(last(longer)));
    assert.equal(shown.code, 0, shown.stderr);
    const places = shown.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.ok(places.some(({ partition, offset }) => partition === longer && offset === last(longer)));
  });
}
