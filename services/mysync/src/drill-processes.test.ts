import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Config, loadConfig } from '@mysync/config';
import { sinkSetting, sinkTarget } from './drill-processes.ts';

function configured(node: string, settings: readonly string[] = []): Config {
  const content = {
    sources: { shop: { hosts: 'db', user: 'u', tables: 'd.*' } },
    sinks: { search: { kind: 'elasticsearch', nodes: node, tables: { match: 'd.*' } } },
  };
  const loaded = loadConfig({ text: JSON.stringify(content), path: 'mysync.yaml', environment: {}, settings });
  assert.ok(loaded.ok, loaded.ok ? '' : loaded.problems.join());
  return loaded.config;
}

test('the way to a node with an address of IPv6 and a path leads there, with the path', () => {
  const config = configured('http://[::1]:9200/search');
  assert.deepEqual(sinkTarget(config, 'search'), { host: '::1', port: 9200 });
  const setting = sinkSetting(config, 'search', 4711);
  assert.equal(setting, '--sinks.search.nodes=http://127.0.0.1:4711/search');
  // as the process that is started understands it
  const started = configured('http://[::1]:9200/search', [setting.slice(2)]);
  const sink = started.sinks['search'];
  assert.ok(sink?.kind === 'elasticsearch');
  assert.deepEqual(sink.nodes, ['http://127.0.0.1:4711/search']);
});

test('a proxy stands before no node that shows a certificate', () => {
  assert.equal(sinkTarget(configured('https://search:9200'), 'search'), null);
});
