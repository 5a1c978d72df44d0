import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Finding, untilMysync } from './finding.ts';
import { Findings } from './findings.ts';

const SOON = { timeoutMs: 20, everyMs: 5 };

test('only what is found about MySync makes a run fail', () => {
  const findings = new Findings();
  assert.equal(findings.outcome, 'passed');
  findings.take(new Error('no server', { cause: new Error('port taken') }));
  assert.equal(findings.outcome, 'suite error');
  assert.deepEqual(findings.suiteErrors, ['no server: port taken']);
  assert.deepEqual(findings.complaints, []);
});

test('what was found before an error of the suite counts, what is found after it does not', () => {
  const findings = new Findings();
  findings.complain('lost');
  findings.take(new Error('own'));
  findings.complain('its doing?');
  findings.take(new Finding('stuck?'));
  assert.equal(findings.outcome, 'failed');
  assert.deepEqual(findings.complaints, ['lost']);
  assert.deepEqual(findings.suiteErrors, ['own']);
});

test('what MySync does not do is a finding; a look that fails is not', async () => {
  await assert.rejects(
    untilMysync('it halts', () => false, SOON),
    new Finding('waited in vain: it halts'),
  );
  const blind = untilMysync('it halts', () => Promise.reject(new Error('connection refused')), SOON);
  await assert.rejects(blind, (error) => !(error instanceof Finding));
  assert.equal(await untilMysync('it halts', () => 'told', SOON), 'told');
});
