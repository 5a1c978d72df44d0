import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { until } from '@mysync/harness';

const FIXTURE = fileURLToPath(new URL('./orphan.fixture.js', import.meta.url));

for (const state of ['running', 'frozen'] as const) {
  test(`a ${state} process ends in order when whoever started it is killed`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mysync-orphan-'));
    const logFile = join(folder, 'child.log');
    const drill = spawn(process.execPath, [FIXTURE, logFile, ...(state === 'frozen' ? ['freeze'] : [])], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let pid = 0;
    try {
      pid = await until('it has started', () => {
        const [line] = /^\d+/.exec(readFileSync(logFile, 'utf8')) ?? [];
        return line !== undefined && Number(line);
      });
      drill.stdin.write('go\n');
      await once(drill.stdout, 'data');
      drill.kill('SIGKILL');
      await once(drill, 'close');
      await until('it has ended', () => /ended in order/.test(readFileSync(logFile, 'utf8')), { timeoutMs: 10_000 });
      pid = 0;
    } finally {
      drill.kill('SIGKILL');
      if (pid > 0) process.kill(pid, 'SIGKILL');
      rmSync(folder, { recursive: true });
    }
  });
}
