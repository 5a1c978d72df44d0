import { coreErrors, type SourcePosition } from '@mysync/core';
import type { ResolvedOptions } from '../options.ts';
import { HistoryIndex } from './history-index.ts';

/** So many entries are not worth a rewriting of the store. */
const FEW = 100;

/**
 * The schema history of a source, as long as its log is read.
 *
 * What reading from the newest checkpoint on cannot ask for is dropped: at the start, and whenever the history has doubled since, so that it
 * stays as large as what is alive, at constant cost for each entry.
 */
export class KeptHistory {
  readonly #options: Pick<ResolvedOptions, 'schemaHistory' | 'rowMetadata' | 'clock' | 'captures'>;
  #index: HistoryIndex | undefined;
  #left = 0;

  constructor(options: Pick<ResolvedOptions, 'schemaHistory' | 'rowMetadata' | 'clock' | 'captures'>) {
    this.#options = options;
  }

  async open(from: SourcePosition): Promise<HistoryIndex> {
    const { schemaHistory, rowMetadata, clock } = this.#options;
    if (schemaHistory === undefined && rowMetadata === 'history') {
      throw coreErrors.INTERNAL({ message: 'rowMetadata is history, but there is no store for one' });
    }
    const index = await HistoryIndex.open(schemaHistory, clock);
    if (rowMetadata === 'history') await index.forgetTypes();
    await this.#prune(index, from);
    this.#index = index;
    return index;
  }

  /** Reading never begins before this place any more. */
  async settled(position: SourcePosition): Promise<void> {
    const index = this.#index;
    if (index === undefined || index.size < Math.max(FEW, 2 * this.#left)) return;
    await this.#prune(index, position);
  }

  async #prune(index: HistoryIndex, before: SourcePosition): Promise<void> {
    if (before.file !== '') await index.prune(before, this.#options.captures);
    this.#left = index.size;
  }
}
