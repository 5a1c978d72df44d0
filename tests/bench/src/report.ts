import { cpus, loadavg, totalmem } from 'node:os';
import type { MessageBytes, Ratio, Result, Skipped } from './result.ts';

export function machineText(): string {
  const all = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${all.length} × ${all[0]?.model ?? 'unknown CPU'}, ${memory} GiB, Node ${process.version}`;
}

export function loadText(): string {
  return loadavg()
    .map((load) => load.toFixed(1))
    .join(' ');
}

export function resultTable(results: readonly Result[]): string {
  const head = [
    'measurement',
    'rows',
    'wall s',
    'CPU s',
    'of it start',
    'rows/s',
    'rows/CPU s',
    'warm',
    'RSS MB',
    'Redis CPU s',
  ];
  const rows = results.map((each) => [
    each.name,
    String(each.rows),
    each.wallSeconds.toFixed(1),
    each.cpuSeconds.toFixed(1),
    each.startCpuSeconds?.toFixed(1) ?? '',
    String(Math.round(each.rows / each.wallSeconds)),
    String(Math.round(each.rows / each.cpuSeconds)),
    each.warmRowsPerCpuSecond?.toString() ?? '',
    String(each.rssMb),
    each.redisCpuSeconds?.toFixed(1) ?? '',
  ]);
  return table([head, ...rows]);
}

export function latencyTable(results: readonly Result[]): string {
  const measured = results.filter((each) => each.p50Ms !== undefined);
  if (measured.length === 0) return '';
  const head = ['commit to Redis', 'p50 ms', 'p99 ms', 'from sending: p50', 'p99'];
  const rows = measured.map((each) => [
    each.name,
    ...[each.p50Ms, each.p99Ms, each.sentP50Ms, each.sentP99Ms].map((value) => value?.toFixed(1) ?? ''),
  ]);
  return table([head, ...rows]);
}

export function ratioTable(ratios: readonly Ratio[]): string {
  if (ratios.length === 0) return '';
  const head = ['speed', 'as a multiple of', 'per CPU s', 'without start', 'warm', 'per wall s', 'goal'];
  const rows = ratios.map((each) => [
    each.name,
    each.baseline,
    ...[each.perCpuSecond, each.perCpuSecondRunning, each.perCpuSecondWarm, each.perWallSecond, each.goal].map(
      (value) => value?.toFixed(2) ?? '',
    ),
  ]);
  return table([head, ...rows]);
}

export function bytesText(bytes: MessageBytes | undefined): string {
  if (bytes === undefined) return '';
  return `bytes per message, key included: mysync ${bytes.mysync}, Debezium's JSON ${bytes.debezium}, with its schema ${bytes.debeziumWithSchema}\n`;
}

export function skippedText(skipped: readonly Skipped[]): string {
  return skipped.map(({ name, why }) => `${name} was not measured: ${why}\n`).join('');
}

/** Columns as wide as their widest cell; the first to the left, the others to the right. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => (row[at] ?? '').length)));
  const line = (row: readonly string[]): string =>
    row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join('  ');
  return `${rows.map(line).join('\n')}\n`;
}
