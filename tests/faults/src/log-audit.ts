/**
 * Judges a whole log that was not compacted, record by record, from the numbers in their fixed places (docs/spec/message.md): what
 * readers may leave behind, whatever happened to them.
 *
 * 1. (epoch, generation) never falls: nothing of a predecessor lies behind its successor's first record.
 * 2. A generation begins with its base, and its sequences follow one another without a gap.
 * 3. A generation's base is at most one beyond what came before it: nothing was skipped.
 */
export class LogAudit {
  readonly complaints: string[] = [];
  #epoch = 0;
  #generation = 0;
  #sequence = 0;
  #started = false;

  /** The next record of one partition: its message, or null for a record of others. */
  offer(where: string, message: Uint8Array): void {
    const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
    const epoch = view.getUint32(3, true);
    const generation = view.getUint32(8, true);
    const base = Number(view.getBigUint64(13, true));
    const sequence = Number(view.getBigUint64(22, true));
    // fences have no sequence
    if (sequence === 0) return;
    const name = `${where}: epoch ${epoch}, generation ${generation}, sequence ${sequence}`;
    if (epoch < this.#epoch || (epoch === this.#epoch && generation < this.#generation)) {
      this.complaints.push(`${name} lies behind epoch ${this.#epoch}, generation ${this.#generation}`);
      return;
    }
    const newer = epoch > this.#epoch || generation > this.#generation;
    if (newer && this.#started && base > this.#sequence + 1) {
      this.complaints.push(`${name} begins at ${base}, what came before ends at ${this.#sequence}`);
    }
    if (newer && sequence !== base)
      this.complaints.push(`${name} is the first of its generation, not its base ${base}`);
    if (!newer && sequence !== this.#sequence + 1) this.complaints.push(`${name} follows ${this.#sequence}`);
    this.#epoch = epoch;
    this.#generation = generation;
    this.#sequence = sequence;
    this.#started = true;
  }
}
