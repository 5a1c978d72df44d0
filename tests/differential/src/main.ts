import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startServer, type TestServer } from '@mysync/harness';
import { type DifferentialOptions, parseOptions, type ServerKind, USAGE } from './options.ts';
import { runSeed, type SeedResult } from './seed.ts';

interface Failed {
  readonly seed: number;
  readonly server: string;
  readonly why: string;
  readonly again: string;
}

const totals = { seeds: 0, rows: 0, failed: [] as Failed[] };

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

async function failed(result: SeedResult, server: string, options: DifferentialOptions): Promise<void> {
  const { seed, failures, log } = result;
  const again = `npm run differential -- --seeds ${seed} --server ${server} --metadata ${options.metadata}`;
  totals.failed.push({ seed, server, why: (failures[0] ?? '').slice(0, 500), again });
  say(`FAILED: ${again}\n${failures.join('\n')}`);
  if (options.statements === '') return;
  await mkdir(options.statements, { recursive: true });
  await writeFile(join(options.statements, `${server}-${seed}.sql`), `${log.join('\n')}\n`);
}

async function runAll(server: TestServer, kind: ServerKind, options: DifferentialOptions): Promise<void> {
  const address = {
    host: server.get('MYSQL_HOST'),
    port: Number(server.get('MYSQL_PORT')),
    user: server.get('MYSQL_USER'),
    password: server.get('MYSQL_PASSWORD'),
  };
  const startedAt = performance.now();
  for (let seed = options.from; seed <= options.to; seed += 1) {
    const result = await runSeed({ seed, server: kind, metadata: options.metadata, address });
    totals.seeds += 1;
    totals.rows += result.rows;
    if (result.failures.length > 0) await failed(result, kind.name, options);
    const done = seed - options.from + 1;
    if (done % 25 !== 0 && seed !== options.to) continue;
    const perSeed = (performance.now() - startedAt) / done / 1000;
    say(
      `${kind.name}: ${done} seeds, ${perSeed.toFixed(2)} s each, ${totals.rows} rows compared, ${totals.failed.length} failed`,
    );
  }
}

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${USAGE}\n`);
    return 0;
  }
  const options = parseOptions(args);
  const servers: TestServer[] = [];
  const stop = new Promise<never>((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => reject(new Error(signal)));
  });
  const run = async (): Promise<void> => {
    for (const kind of options.servers) {
      const { flavor, env } = kind;
      // an instance keeps the version that it was made with
      const instance =
        options.instance === ''
          ? {}
          : { instance: `${options.instance}${env.MARIADB_VERSION === undefined ? '' : '-later'}` };
      const server = await startServer(flavor, { env, ...instance });
      servers.push(server);
      await runAll(server, kind, options);
    }
  };
  try {
    await Promise.race([run(), stop]);
  } finally {
    if (options.instance === '') for (const server of servers) await server.wipe();
  }
  const { seeds, rows, failed: list } = totals;
  if (options.json) process.stdout.write(`${JSON.stringify({ seeds, rows, failed: list })}\n`);
  else process.stdout.write(`${seeds} seeds, ${rows} rows compared, ${list.length} failed\n`);
  return list.length > 0 ? 1 : 0;
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(2);
  },
);
