import { coreErrors, Turns } from '@mysync/core';
import { encodeCheckpoint, parseCheckpoint } from './checkpoint-codec.ts';
import { checkpointErrors } from './errors.ts';
import type { Checkpoint, CheckpointStore } from './port.ts';

/** A place for one text, which one owner at a time may write. */
export interface OwnedText {
  /** For error texts. */
  readonly where: string;
  /** null when nothing was written yet. */
  read(): Promise<string | null>;
  /** Durable and whole once it resolves. Throws CHECKPOINT_FENCED when another owner has taken over. */
  write(text: string): Promise<void>;
}

/**
 * A checkpoint store over a place that knows who owns it.
 *
 * 1. Only the owner writes (`OwnedText`), one save after another, so what was read is what is replaced.
 * 2. What is there and is not ours is CHECKPOINT_INVALID, in `load` and in `save`: never treated as absent, never overwritten.
 * 3. A save replaces exactly the epoch that its caller names, and never a newer one; otherwise CHECKPOINT_FENCED.
 */
export class TextCheckpointStore implements CheckpointStore {
  readonly #text: OwnedText;
  readonly #release: () => Promise<void>;
  readonly #saves = new Turns();
  #closed: Promise<void> | undefined;

  /** `release` gives up the ownership. */
  constructor(text: OwnedText, release: () => Promise<void>) {
    this.#text = text;
    this.#release = release;
  }

  async load(): Promise<Checkpoint | null> {
    const text = await this.#text.read();
    return text === null ? null : parseCheckpoint(text, this.#text.where);
  }

  async save(checkpoint: Checkpoint, replaces: number | null): Promise<void> {
    await this.#saves.take(() => this.#save(checkpoint, replaces));
  }

  /** Waits for a save that runs. Idempotent. */
  async close(): Promise<void> {
    this.#closed ??= this.#saves.over().then(this.#release);
    await this.#closed;
  }

  async #save(checkpoint: Checkpoint, replaces: number | null): Promise<void> {
    const { where } = this.#text;
    if (this.#closed !== undefined) throw fenced('the checkpoint store is closed', where);
    const text = encodeVerified(checkpoint, where);
    requireReplaceable({ stored: await this.load(), checkpoint, replaces, where });
    await this.#text.write(text);
  }
}

/** The text, after it was read back: what could not be loaded again is never saved. */
export function encodeVerified(checkpoint: Checkpoint, where: string): string {
  const text = encodeCheckpoint(checkpoint);
  try {
    parseCheckpoint(text, where);
  } catch (cause) {
    throw coreErrors.INTERNAL({ message: 'a checkpoint that could not be loaded again was to be saved', cause });
  }
  return text;
}

export interface Replacement {
  readonly stored: Checkpoint | null;
  readonly checkpoint: Checkpoint;
  /** The epoch that the caller believes is stored. */
  readonly replaces: number | null;
  readonly where: string;
}

/** Throws CHECKPOINT_FENCED unless the stored epoch is the one to be replaced, and not a newer one. */
export function requireReplaceable({ stored, checkpoint, replaces, where }: Replacement): void {
  const epoch = stored?.epoch ?? null;
  if (epoch !== replaces) {
    throw fenced(`epoch ${name(epoch)} is stored where ${name(replaces)} was to be replaced`, where);
  }
  if (epoch !== null && checkpoint.epoch < epoch) {
    throw fenced(`epoch ${checkpoint.epoch} cannot replace the newer ${epoch}`, where);
  }
}

function fenced(message: string, where: string): Error {
  return checkpointErrors.CHECKPOINT_FENCED({ message, where: { path: where } });
}

function name(epoch: number | null): string {
  return epoch === null ? 'none' : String(epoch);
}
