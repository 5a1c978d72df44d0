import { parseArgs } from 'node:util';
import type { TransportName } from './setting.ts';

export const SOAK_USAGE = `npm run soak -- [options]
  --minutes M          how long (default 20)
  --transport NAME     log or kafka (default log)
  --rate N             rows per second of the load (default 1000)
  --seed N             the order of the faults (default 1)
  --json               end with one line of JSON`;

export interface SoakFlags {
  readonly minutes: number;
  readonly transport: TransportName;
  readonly rate: number;
  readonly seed: number;
  readonly json: boolean;
}

export function parseSoakOptions(args: readonly string[]): SoakFlags {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '20' },
      transport: { type: 'string', default: 'log' },
      rate: { type: 'string', default: '1000' },
      seed: { type: 'string', default: '1' },
      json: { type: 'boolean', default: false },
    },
  });
  const { transport } = values;
  if (transport !== 'log' && transport !== 'kafka') throw new Error(`--transport is log or kafka, not '${transport}'`);
  const [minutes, rate, seed] = [Number(values.minutes), Number(values.rate), Number(values.seed)];
  if (!(minutes >= 2)) throw new Error(`--minutes is a number from 2 on, not '${values.minutes}'`);
  if (!(rate >= 100 && rate <= 100_000)) throw new Error(`--rate is a number from 100 on, not '${values.rate}'`);
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed is a whole number, not '${values.seed}'`);
  return { minutes, transport, rate, seed, json: values.json };
}
