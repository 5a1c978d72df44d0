/** What the host does for the module. All of it may throw: the module's work then ends there. */

/** Throws; returns never. */
export declare function fail(code: i32, at: usize): void;

/** Writes the value of a column that begins at `from` by way of the reference, moves STATE_AT behind it, and returns where it ends. */
export declare function reference(column: u32, from: usize, out: usize): usize;

/** Writes the first bytes of the SHA-256 of `[from, to)` at `out`. */
export declare function rowHash(from: usize, to: usize, out: usize): void;

/** Writes a double as JSON has it and returns where it ends. */
export declare function jsonDouble(value: f64, out: usize): usize;

/** Writes an opaque value of JSON, `[from, to)` of the document `[start, end)`, and returns where it ends. */
export declare function jsonOpaque(type: u32, from: usize, to: usize, start: usize, end: usize, out: usize): usize;

/** Writes text that is not well-formed UTF-8 as JSON has it and returns where it ends. */
export declare function jsonText(from: usize, to: usize, out: usize): usize;
