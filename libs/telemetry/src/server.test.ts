import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from './metrics.ts';
import { type HealthReport, TelemetryServer } from './server.ts';

test('a process is ready once it has parts and all of them are; one that has none yet is alive', async () => {
  let parts: readonly HealthReport[] = [];
  const server = new TelemetryServer({
    host: '127.0.0.1',
    port: 0,
    registry: createMetrics().registry,
    health: () => parts,
    refresh: () => undefined,
    status: () => ({}),
  });
  const port = await server.start();
  const codes = async (): Promise<readonly number[]> =>
    await Promise.all(
      ['healthz', 'readyz'].map(async (path) => (await fetch(`http://127.0.0.1:${port}/${path}`)).status),
    );
  try {
    assert.deepEqual(await codes(), [200, 503]);
    const well = { name: 'a', alive: true, ready: true, detail: '' };
    parts = [well];
    assert.deepEqual(await codes(), [200, 200]);
    parts = [well, { ...well, ready: false }];
    assert.deepEqual(await codes(), [200, 503]);
    parts = [well, { ...well, ready: false, alive: false }];
    assert.deepEqual(await codes(), [503, 503]);
  } finally {
    await server.close();
  }
});
