/** Looks from outside at what a long run might use up: every process's memory and handles, lag, and what lies on disk. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Actor } from './actor.ts';
import { type Bound, judgeSlope, type Sample, type SlopeVerdict } from './slope.ts';

/** `rss`: memory in MB that is the process's own (mapped files left out) · `mapped`: all of it · `handles`: open ones · `lag`: seconds · `log`, `checkpoint`: MB on disk. */
export type FigureKind = 'rss' | 'mapped' | 'handles' | 'lag' | 'log' | 'checkpoint';

export interface Figure {
  readonly kind: FigureKind;
  /** The process and its pid, or the sink. */
  readonly of: string;
  readonly samples: Sample[];
}

/** What counts as flat over half of the run. null: told, not judged. */
const BOUNDS: Readonly<Record<FigureKind, Bound | null>> = {
  rss: { absolute: 12, relative: 0.1 },
  // pages of the log that were touched once and that nobody else needs: the system takes them back
  mapped: null,
  handles: { absolute: 4, relative: 0.1 },
  lag: { absolute: 0.3, relative: 0 },
  log: { absolute: 24, relative: 0.2 },
  checkpoint: { absolute: 0.1, relative: 0.2 },
};

export class Samples {
  readonly #figures = new Map<string, Figure>();
  readonly #began = performance.now();

  /** Seconds since it began. */
  get now(): number {
    return (performance.now() - this.#began) / 1000;
  }

  add(kind: FigureKind, of: string, value: number): void {
    const name = `${kind} ${of}`;
    const figure = this.#figures.get(name) ?? { kind, of, samples: [] };
    this.#figures.set(name, figure);
    figure.samples.push({ at: this.now, value });
  }

  process(actor: Actor): void {
    const { pid, name } = actor;
    if (pid === null) return;
    const found = lookAt(pid);
    if (found === null) return;
    // another process of the same place begins anew
    const of = `${name} ${pid}`;
    this.add('rss', of, found.ownMb);
    this.add('mapped', of, found.mb);
    this.add('handles', of, found.handles);
  }

  /** Every figure that was there from `from` to the end, judged from there on. */
  judge(from: number): readonly (Figure & SlopeVerdict)[] {
    const end = this.now;
    const most = (end - from) * 0.1;
    const judged: (Figure & SlopeVerdict)[] = [];
    for (const figure of this.#figures.values()) {
      const late = figure.samples.filter(({ at }) => at >= from);
      if (late.length < 3 || (late[0]?.at ?? end) > from + most || (late.at(-1)?.at ?? 0) < end - most) continue;
      const bound = BOUNDS[figure.kind];
      const verdict = judgeSlope(late, bound ?? { absolute: Number.POSITIVE_INFINITY, relative: 0 });
      judged.push({ ...figure, ...verdict });
    }
    return judged;
  }
}

function lookAt(pid: number): { ownMb: number; mb: number; handles: number } | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const mb = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024;
    return { ownMb: mb('RssAnon'), mb: mb('VmRSS'), handles: readdirSync(`/proc/${pid}/fd`).length };
  } catch {
    // it has just ended
    return null;
  }
}

/** MB that the files of a folder take on disk; 0 where it is not there. */
export function folderMb(folder: string): number {
  let bytes = 0;
  try {
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      bytes += statSync(join(folder, name), { throwIfNoEntry: false })?.blocks ?? 0;
    }
  } catch {
    return 0;
  }
  return (bytes * 512) / 2 ** 20;
}
