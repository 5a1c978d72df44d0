import { randomBytes } from 'node:crypto';
import { link, readFile, readlink, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Clock } from '@mysync/core';
import { checkpointErrors } from './errors.ts';

export interface OwnerLockOptions {
  readonly path: string;
  readonly clock: Clock;
  /** An owner that cannot be looked up is taken for dead when its lock was not refreshed for this long. */
  readonly leaseMs: number;
}

/** Who holds a lock: enough to tell for sure whether it lives, as long as it runs on this machine. */
interface Owner {
  readonly token: string;
  readonly pid: number;
  /** In clock ticks since boot (proc(5), field 22): tells a process from a later one with its number. '' where unknown. */
  readonly startTime: string;
  readonly bootId: string;
  readonly pidNamespace: string;
  readonly host: string;
}

type Life = 'alive' | 'dead' | 'unknown';

/**
 * A lock file that one living process holds.
 *
 * 1. It appears whole (written aside, then linked), so a reader of it never sees half an owner.
 * 2. A lock whose owner surely died (its number is free, or belongs to a process of another start time) is taken over at once; one of a
 *    living process, also a frozen one, never.
 * 3. An owner that cannot be looked up (another machine, container or boot) is watched for `leaseMs`: taken over only if it
 *    did not refresh its lock meanwhile. Nobody's clock is compared with another's.
 * 4. Whoever takes a lock over moves it aside and looks at what it moved: had somebody been faster, that one gets it back.
 * 5. `isHeld` reads the file: an owner that was frozen until its lease was given away finds out before it writes.
 */
export class OwnerLock {
  readonly token = randomBytes(8).toString('hex');
  readonly #path: string;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  #content = '';
  #refresh: NodeJS.Timeout | null = null;

  constructor(options: OwnerLockOptions) {
    this.#path = options.path;
    this.#clock = options.clock;
    this.#leaseMs = options.leaseMs;
  }

  /** Throws CHECKPOINT_LOCKED, and file system errors as they are. */
  async acquire(signal?: AbortSignal): Promise<void> {
    const owner = await describeSelf(this.token);
    const aside = `${this.#path}.${this.token}`;
    this.#content = `${JSON.stringify(owner)}\n`;
    await writeFile(aside, this.#content, { flag: 'wx', mode: 0o600 });
    try {
      while (!(await linked(aside, this.#path))) await this.#removeDead(owner, signal);
    } finally {
      await rm(aside, { force: true });
    }
    this.#refresh = setInterval(() => {
      const now = new Date();
      // A refresh that fails is not an error by itself: whether the lock is still ours is asked before each write.
      utimes(this.#path, now, now).catch(() => undefined);
    }, this.#leaseMs / 5);
    this.#refresh.unref();
  }

  async isHeld(): Promise<boolean> {
    return (await contentOf(this.#path)) === this.#content;
  }

  /** Idempotent; leaves a lock that is not ours alone. */
  async release(): Promise<void> {
    if (this.#refresh === null) return;
    clearInterval(this.#refresh);
    this.#refresh = null;
    if (await this.isHeld()) await rm(this.#path, { force: true });
  }

  async #removeDead(self: Owner, signal: AbortSignal | undefined): Promise<void> {
    const content = await contentOf(this.#path);
    if (content === null) return;
    const owner = parseOwner(content);
    const life = owner === null ? 'unknown' : await lifeOf(owner, self);
    if (life === 'alive') throw this.#locked(owner);
    if (life === 'unknown') {
      const before = await touchedAt(this.#path);
      await this.#clock.sleep(this.#leaseMs, signal);
      if ((await contentOf(this.#path)) !== content) return;
      if ((await touchedAt(this.#path)) !== before) throw this.#locked(owner);
    }
    const aside = `${this.#path}.${self.token}.stale`;
    try {
      await rename(this.#path, aside);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return;
      throw error;
    }
    if ((await contentOf(aside)) !== content) await linked(aside, this.#path);
    await rm(aside, { force: true });
  }

  #locked(owner: Owner | null): Error {
    const who = owner === null ? 'another process' : `process ${owner.pid} on ${owner.host}`;
    return checkpointErrors.CHECKPOINT_LOCKED({
      message: `the checkpoint is in use by ${who}`,
      where: { path: this.#path },
    });
  }
}

async function describeSelf(token: string): Promise<Owner> {
  return {
    token,
    pid: process.pid,
    startTime: (await processStart(process.pid)) ?? '',
    bootId: ((await contentOf('/proc/sys/kernel/random/boot_id')) ?? '').trim(),
    pidNamespace: await readlink('/proc/self/ns/pid').catch(() => ''),
    host: hostname(),
  };
}

async function lifeOf(owner: Owner, self: Owner): Promise<Life> {
  if (owner.host !== self.host || owner.bootId !== self.bootId || owner.pidNamespace !== self.pidNamespace)
    return 'unknown';
  if (self.startTime !== '') return (await processStart(owner.pid)) === owner.startTime ? 'alive' : 'dead';
  // No /proc: a number that is in use may be somebody else's by now.
  try {
    process.kill(owner.pid, 0);
    return owner.pid === self.pid ? 'alive' : 'unknown';
  } catch (error) {
    return codeOf(error) === 'ESRCH' ? 'dead' : 'unknown';
  }
}

/** Start time of a living process, or null. One that ended and was not waited for (state Z) or is being removed (X) is dead. */
async function processStart(pid: number): Promise<string | null> {
  const line = await contentOf(`/proc/${pid}/stat`);
  if (line === null) return null;
  // The name in brackets may hold anything, so fields are counted from its end: state is the first, start time the 20th.
  const values = line.slice(line.lastIndexOf(')') + 2).split(' ');
  return values[0] === 'Z' || values[0] === 'X' ? null : (values[19] ?? null);
}

function parseOwner(content: string): Owner | null {
  try {
    const value: unknown = JSON.parse(content);
    return typeof value === 'object' && value !== null && typeof (value as Owner).pid === 'number'
      ? (value as Owner)
      : null;
  } catch {
    return null;
  }
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

async function contentOf(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ESRCH') return null;
    throw error;
  }
}

async function touchedAt(path: string): Promise<number> {
  return (await stat(path).catch(() => null))?.mtimeMs ?? 0;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}
