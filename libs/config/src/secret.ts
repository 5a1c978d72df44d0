/** Where a secret came from: what `config print` shows in its place. */
export type SecretOrigin = { readonly env: string } | { readonly file: string } | 'plain';

/**
 * A text that is never printed: every way of turning it into text gives `[secret]`, but `reveal`.
 */
export class Secret {
  readonly #text: string;
  readonly origin: SecretOrigin;

  constructor(text: string, origin: SecretOrigin = 'plain') {
    this.#text = text;
    this.origin = origin;
  }

  /** The secret itself, for the client that needs it and nothing else. */
  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  [Symbol.toPrimitive](): string {
    return '[secret]';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}
