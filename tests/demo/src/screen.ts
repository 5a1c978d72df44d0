import type { TextRow } from '@mysync/harness';

const CLEAR_LINE = '\x1b[2K';

/** What a person wants to see, drawn in place on a terminal; one line a second elsewhere. */
export class Screen {
  readonly #live = process.stdout.isTTY === true;
  #drawn = 0;

  /** A line that stays. */
  say(text: string): void {
    this.#erase();
    process.stdout.write(`${text}\n`);
  }

  /** Lines that are drawn over by the next call. */
  show(lines: readonly string[]): void {
    if (!this.#live) {
      process.stdout.write(`${lines[0] ?? ''}\n`);
      return;
    }
    this.#erase();
    process.stdout.write(
      lines.map((line) => `${CLEAR_LINE}${line.slice(0, (process.stdout.columns ?? 120) - 1)}\n`).join(''),
    );
    this.#drawn = lines.length;
  }

  #erase(): void {
    if (this.#drawn > 0) process.stdout.write(`\x1b[${this.#drawn}A\x1b[0J`);
    this.#drawn = 0;
  }
}

/** A row of the source beside its copy, column by column. */
export function sideBySide(title: string, source: TextRow | undefined, copy: TextRow | undefined): string[] {
  if (source === undefined) return [`${title}: (deleted)`];
  const lines = [`${title.padEnd(14)} ${'MySQL'.padEnd(40)} copy`];
  for (const [column, text] of Object.entries(source)) {
    const other = copy?.[column] ?? null;
    const mark = text === other ? ' ' : '≠';
    lines.push(`  ${column.padEnd(12)} ${(text ?? 'NULL').padEnd(40)} ${other ?? '-'} ${mark}`);
  }
  return lines;
}
