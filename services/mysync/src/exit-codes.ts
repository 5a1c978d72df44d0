/** Exit codes of the command (docs/spec/command.md). */
export const EXIT = {
  ok: 0,
  /** A part failed, or a question could not be answered. */
  failed: 1,
  /** The command line or the configuration is wrong: nothing was started. */
  usage: 2,
  /** `check` found errors; `verify` or `drill` found something wrong. */
  findings: 3,
  /** A stop took longer than allowed and was cut short: the next start resumes, nothing is lost. */
  stopForced: 4,
  /** A second signal while stopping. */
  interrupted: 130,
} as const;

/** Ends the command with a code, after its text was printed. */
export class ExitRequest extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`exit ${code}`);
    this.code = code;
  }
}
