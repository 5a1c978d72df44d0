import { runDemo } from './demo.ts';
import { parseOptions } from './options.ts';

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (stop.signal.aborted) process.exit(130);
    stop.abort();
  });
}

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2));
  const result = await runDemo(options, stop.signal);
  process.stdout.write(options.json ? `${JSON.stringify(result)}\n` : 'stopped and cleaned up\n');
  return Object.values(result.sinks).every((sink) => sink.equal) ? 0 : 1;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
