import { parseArgs } from 'node:util';

export interface DemoOptions {
  readonly transport: 'log' | 'kafka';
  readonly sinks: readonly ('redis' | 'elasticsearch')[];
  /** How long changes flow; until Ctrl-C when null. */
  readonly seconds: number | null;
  readonly json: boolean;
  /** Statements or transactions per second that the demo asks for. */
  readonly rate: number;
}

export const USAGE = `npm run demo -- [options]
  --seconds N          stop after N seconds of changes (default: 30 with --json, else until Ctrl-C)
  --transport NAME     log (embedded, default) or kafka
  --sinks LIST         redis (default), elasticsearch or both: redis,elasticsearch
  --rate N             statements and transactions per second (default 300)
  --json               nothing but one line of JSON at the end`;

/** Throws an Error with one clear sentence for a flag that is wrong. */
export function parseOptions(args: readonly string[]): DemoOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string' },
      transport: { type: 'string', default: 'log' },
      sinks: { type: 'string', default: 'redis' },
      rate: { type: 'string', default: '300' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) throw new Error(USAGE);
  const { transport } = values;
  if (transport !== 'log' && transport !== 'kafka') throw new Error(`--transport is log or kafka, not '${transport}'`);
  const sinks = values.sinks.split(',').map((name) => {
    if (name !== 'redis' && name !== 'elasticsearch')
      throw new Error(`--sinks knows redis and elasticsearch, not '${name}'`);
    return name;
  });
  const number = (flag: string, text: string): number => {
    const value = Number(text);
    if (!(value > 0 && value <= 86_400)) throw new Error(`--${flag} is a number from 1 to 86400, not '${text}'`);
    return value;
  };
  const fallback = values.json ? 30 : null;
  return {
    transport,
    sinks: [...new Set(sinks)],
    seconds: values.seconds === undefined ? fallback : number('seconds', values.seconds),
    json: values.json,
    rate: number('rate', values.rate),
  };
}
