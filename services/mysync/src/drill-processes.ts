/** What a drill starts in place of the user's own processes, and the ways in which that can be broken. */
import { join } from 'node:path';
import { type Config, parseHost, redisStore } from '@mysync/config';
import { DrillProcess, type Fault, FaultProxy, frozen, killed, waysBroken } from '@mysync/drill';
import { MYSQL_PORT, required } from './compose.ts';
import type { Lifecycle } from './lifecycle.ts';

/** Faults that this set-up does not allow. */
export interface Omitted {
  readonly faults: string;
  readonly why: string;
}

interface Managed {
  readonly processes: readonly DrillProcess[];
  readonly faults: readonly Fault[];
  readonly omitted: readonly Omitted[];
}

interface Management {
  readonly config: Config;
  readonly path: string;
  readonly settings: readonly string[];
  readonly source: string;
  readonly sink: string;
  /** Where the logs of the processes go. */
  readonly folder: string;
  readonly lifecycle: Lifecycle;
  /** How long a fault lasts. */
  readonly seconds: number;
}

/** A reader and a writer of this configuration, with ways to source and sink that can be broken where that can be put in between. */
export async function manageProcesses(parts: Management): Promise<Managed> {
  const { config, path, settings, source, sink, folder, lifecycle, seconds } = parts;
  const faults: Fault[] = [];
  const omitted: Omitted[] = [];
  if (config.transport.kind === 'kafka') {
    omitted.push({
      faults: 'brokers restarted, ways to them',
      why: 'brokers tell their clients addresses that a proxy has not, and are not ours to restart: a plan (--plan) can',
    });
  }
  const through = async (name: string, target: { host: string; port: number } | null): Promise<FaultProxy | null> => {
    if (target === null) {
      omitted.push({
        faults: `${name} cut off, silent, slow`,
        why: 'a proxy can stand before a single server without TLS only',
      });
      return null;
    }
    const proxy = lifecycle.opened(name, await FaultProxy.open(target), (opened) => opened.close());
    faults.push(...waysBroken(name, proxy, seconds));
    return proxy;
  };
  const sourceWay = await through('source', sourceTarget(config, source));
  const sinkWay = await through('sink', sinkTarget(config, sink));
  const given = ['--config', path, ...settings.flatMap((setting) => ['--set', setting]), '--telemetry.port=0'];
  const common = [...given, '--until-input-ends'];
  const start = (name: string, args: readonly string[]): DrillProcess => {
    const child = new DrillProcess({ name, args: [...args, ...common], logFile: join(folder, `${name}.log`) });
    child.start();
    return lifecycle.opened(name, child, (opened) => opened.stop());
  };
  const reader = start('reader', [
    ...['reader', '--source', source],
    ...(sourceWay === null ? [] : [`--sources.${source}.hosts=127.0.0.1:${sourceWay.port}`]),
  ]);
  const writer = start('writer', [
    ...['writer', '--sink', sink],
    ...(sinkWay === null ? [] : [sinkSetting(config, sink, sinkWay.port)]),
  ]);
  for (const [name, child] of [
    ['reader', reader],
    ['writer', writer],
  ] as const) {
    faults.push(killed(name, child), frozen(name, child, seconds));
  }
  return { processes: [reader, writer], faults, omitted };
}

/** null where a proxy would be another host to a certificate. */
function sourceTarget(config: Config, source: string): { host: string; port: number } | null {
  const { hosts, tls } = required(config.sources, source);
  return tls === undefined && hosts.length === 1 ? parseHost(hosts[0] ?? '', MYSQL_PORT) : null;
}

/** null where there are several servers, or a certificate. */
export function sinkTarget(config: Config, name: string): { host: string; port: number } | null {
  const sink = required(config.sinks, name);
  if (sink.kind === 'redis') {
    const { hosts, encrypted } = redisStore(sink);
    return !sink.cluster && !encrypted && hosts.length === 1 ? (hosts[0] ?? null) : null;
  }
  const [node] = sink.nodes;
  const url = sink.nodes.length === 1 && node !== undefined ? new URL(node) : null;
  // an address of IPv6 is not told in the brackets that it has in a URL
  return url?.protocol === 'http:'
    ? { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 80) }
    : null;
}

export function sinkSetting(config: Config, name: string, port: number): string {
  const sink = required(config.sinks, name);
  if (sink.kind === 'elasticsearch') return `--sinks.${name}.nodes=${through(sink.nodes[0] ?? '', port)}`;
  if (sink.url === undefined) return `--sinks.${name}.hosts=127.0.0.1:${port}`;
  return `--sinks.${name}.url=${through(sink.url, port)}`;
}

/** The same URL, by another way: with its user, path and all. */
function through(address: string, port: number): string {
  const url = new URL(address);
  url.host = `127.0.0.1:${port}`;
  return url.href;
}
