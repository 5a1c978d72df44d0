/** CPU time and memory of a process as the kernel counts them (proc(5)). */
import { readFileSync } from 'node:fs';

/** USER_HZ: what /proc counts CPU time in, 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

export interface Usage {
  readonly cpuSeconds: number;
  /** The most that was ever resident. */
  readonly rssMb: number;
}

/** Throws when the process is gone. */
export function usageOf(pid: number): Usage {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The name, in brackets, may hold spaces; utime and stime are fields 14 and 15, the state after the name is field 3.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  const peak = /^VmHWM:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  return { cpuSeconds: ticks / TICKS_PER_SECOND, rssMb: Math.round(Number(peak?.[1] ?? 0) / 1024) };
}
