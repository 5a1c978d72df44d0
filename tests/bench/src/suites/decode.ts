import type { Bench } from '../bench.ts';
import { runChild } from '../child.ts';
import type { DecodeInput } from '../children/decode.ts';
import { round } from '../result.ts';
import { DATABASE } from '../table.ts';

export async function decodeSuite(bench: Bench): Promise<void> {
  const name = 'decode';
  if (!bench.wants(name)) return;
  const start = await bench.loaded();
  const { rows, profile } = bench.options;
  const input: DecodeInput = { ...(await bench.address()), database: DATABASE, start, rows };
  bench.say(`${name}: reading the binlog`);
  const { answer, usage, wallSeconds } = await runChild<{ rows: number; bytes: number }>('decode', input, {
    profile,
    profileName: name,
  });
  bench.say(`${Math.round(answer.bytes / answer.rows)} bytes per message, key included`);
  bench.add({ name, rows: answer.rows, wallSeconds: round(wallSeconds), ...usage });
}
