import assert from 'node:assert/strict';
import { test } from 'node:test';
import { itemVerdict, responseError } from './failures.ts';

test('items of a bulk: the statuses and types that Elasticsearch 9.5 was seen to send', () => {
  assert.equal(itemVerdict(201, ''), 'done');
  assert.equal(itemVerdict(404, ''), 'done');
  assert.equal(itemVerdict(409, 'version_conflict_engine_exception'), 'stale');
  assert.equal(itemVerdict(400, 'document_parsing_exception'), 'refused');
  assert.equal(itemVerdict(400, 'strict_dynamic_mapping_exception'), 'refused');
  assert.equal(itemVerdict(400, 'illegal_argument_exception'), 'refused');
  assert.equal(itemVerdict(429, 'cluster_block_exception'), 'blocked');
  assert.equal(itemVerdict(403, 'cluster_block_exception'), 'blocked');
  assert.equal(itemVerdict(400, 'index_closed_exception'), 'blocked');
  assert.equal(itemVerdict(429, 'es_rejected_execution_exception'), 'transient');
  assert.equal(itemVerdict(429, 'circuit_breaking_exception'), 'transient');
  assert.equal(itemVerdict(503, 'unavailable_shards_exception'), 'transient');
  assert.equal(itemVerdict(503, 'process_cluster_event_timeout_exception'), 'transient');
  assert.equal(itemVerdict(403, 'security_exception'), 'denied');
  assert.equal(itemVerdict(404, 'index_not_found_exception'), 'no-index');
});

test('whole answers', () => {
  const code = (status: number, type = 'x'): string =>
    responseError(status, { error: { type, reason: 'because' } }, 'POST /_bulk').code;
  assert.equal(code(401, 'security_exception'), 'SINK_DENIED');
  assert.equal(code(403, 'security_exception'), 'SINK_DENIED');
  assert.equal(code(403, 'cluster_block_exception'), 'ES_READ_ONLY');
  assert.equal(code(400, 'index_closed_exception'), 'ES_READ_ONLY');
  assert.equal(code(503, 'cluster_block_exception'), 'SINK_OVERLOADED');
  assert.equal(code(429), 'SINK_OVERLOADED');
  assert.equal(code(503), 'SINK_OVERLOADED');
  assert.equal(code(500), 'SINK_UNREACHABLE');
  assert.equal(code(502), 'SINK_UNREACHABLE');
  assert.equal(code(504), 'SINK_UNREACHABLE');
  assert.equal(code(406, 'media_type_header_exception'), 'ES_VERSION_UNSUPPORTED');
  assert.equal(code(400), 'ES_REQUEST_REFUSED');
  assert.equal(responseError(502, '<html>', 'GET /').retriable, true);
  assert.equal(responseError(401, '', 'GET /').retriable, true);
});
