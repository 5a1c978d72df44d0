/**
 * Who a process is, so that another one on the same machine sees at once that it is gone: boot, pid namespace, pid and
 * start time (pids are used again; proc(5): field 22 of /proc/PID/stat). Where the namespace differs, or there is no
 * /proc, nothing can be said and the lease decides.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';

export interface ProcessIdentity {
  readonly boot: string;
  readonly namespace: string;
  readonly pid: number;
  readonly start: string;
}

function quietly(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}

/** State letter and start time of a process; null when there is none. */
function inspect(pid: number): { readonly state: string; readonly start: string } | null {
  const stat = quietly(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  // The command name stands in parentheses and may hold spaces and parentheses itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  const start = fields[19];
  return state === undefined || start === undefined ? null : { state, start };
}

const here: ProcessIdentity = {
  boot: quietly(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()),
  namespace: quietly(() => readlinkSync('/proc/self/ns/pid')),
  pid: process.pid,
  start: inspect(process.pid)?.start ?? '',
};

export function thisProcess(): ProcessIdentity {
  return here;
}

/** True when the process surely does not run any more. */
export function isGone(identity: ProcessIdentity): boolean {
  if (identity.boot !== here.boot) return identity.boot !== '' && here.boot !== '';
  if (identity.namespace === '' || identity.namespace !== here.namespace) return false;
  if (identity.pid === here.pid) return identity.start !== here.start;
  const found = inspect(identity.pid);
  return found === null || found.start !== identity.start || found.state === 'Z' || found.state === 'X';
}

export function randomId(): string {
  return randomBytes(8).toString('hex');
}
