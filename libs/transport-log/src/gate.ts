/**
 * Lets one process at a time open or close the store of a directory.
 *
 * Why: the last process that closes an LMDB environment destroys the mutexes in its lock file. A process that opens at that
 * very moment waits for the file lock, gets it, believes that others keep the mutexes alive, and has a store whose every
 * transaction fails (seen with lmdb-js 3.5.6: "Invalid argument: No transaction to renew"). Opening and closing must not
 * overlap; a process that is killed closes nothing and does no harm.
 *
 * A file made with O_EXCL that names its owner. Left behind by a dead process it is taken over: at once where the owner is
 * seen to be gone, else when it is far older than opening or closing can take. A process that exits without closing takes
 * the gate in its exit handler and leaves it to be taken over, since LMDB's own cleanup runs after that.
 */
import { linkSync, readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { isGone, type ProcessIdentity, randomId, thisProcess } from './process-identity.ts';

const TRY_AGAIN_MS = 5;
const STALE_MS = 30_000;
const EXIT_WAIT_MS = 2000;

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}

function isStale(content: string, ageMs: number): boolean {
  if (ageMs > STALE_MS) return true;
  try {
    return isGone(JSON.parse(content) as ProcessIdentity);
  } catch {
    // Empty or cut: its owner is just writing it, or died while it did.
    return ageMs > 1000;
  }
}

/** True when the gate is ours now. */
function tryTake(file: string): boolean {
  try {
    writeFileSync(file, JSON.stringify(thisProcess()), { flag: 'wx' });
    return true;
  } catch (error) {
    // On a full disk the file is there, without a name in it: good enough for the moment that this takes.
    if (codeOf(error) === 'ENOSPC') return true;
    if (codeOf(error) !== 'EEXIST') throw error;
  }
  try {
    const content = readFileSync(file, 'utf8');
    if (!isStale(content, Date.now() - statSync(file).mtimeMs)) return false;
    // Moving it away succeeds for one only; what was moved must be what was looked at.
    const aside = `${file}.${randomId()}`;
    renameSync(file, aside);
    if (readFileSync(aside, 'utf8') !== content) linkSync(aside, file);
    unlinkSync(aside);
  } catch {
    // Somebody else was faster.
  }
  return false;
}

function release(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // Taken over because it took too long; nothing is ours to remove.
  }
}

/** Runs the action while no other process opens or closes. */
export async function throughGate<T>(file: string, action: () => Promise<T>): Promise<T> {
  while (!tryTake(file)) await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_MS));
  try {
    return await action();
  } finally {
    release(file);
  }
}

/** For the exit handler: takes the gate, waiting without the event loop, and keeps it. */
export function takeGateAtExit(file: string): void {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  try {
    for (let waited = 0; waited < EXIT_WAIT_MS && !tryTake(file); waited += TRY_AGAIN_MS) {
      Atomics.wait(sleeper, 0, 0, TRY_AGAIN_MS);
    }
  } catch {
    // The directory is gone: nobody will open it.
  }
}
