import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse, parseAllDocuments } from 'yaml';

const DEPLOY = fileURLToPath(new URL('../../../deploy/', import.meta.url));
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

interface Model {
  validate(): void;
}

function manifests(): { file: string; manifest: Manifest }[] {
  return readdirSync(`${DEPLOY}kubernetes`)
    .filter((file) => file.endsWith('.yaml') && file !== 'kustomization.yaml' && file !== 'mysync.yaml')
    .flatMap((file) =>
      parseAllDocuments(readFileSync(`${DEPLOY}kubernetes/${file}`, 'utf8')).map((document) => ({
        file,
        manifest: document.toJS() as Manifest,
      })),
    );
}

async function modelOf(manifest: Manifest): Promise<Model> {
  const models = (await import(`kubernetes-models/${manifest.apiVersion}/${manifest.kind}`)) as Record<
    string,
    new (
      data: Manifest,
    ) => Model
  >;
  const make = models[manifest.kind];
  assert.ok(make, `no schema for ${manifest.apiVersion} ${manifest.kind}`);
  return new make(manifest);
}

test('every manifest fits the schema of its kind', async () => {
  const all = manifests();
  assert.ok(all.length >= 8);
  for (const { file, manifest } of all) {
    const model = await modelOf(manifest);
    assert.doesNotThrow(() => model.validate(), `${file}: ${manifest.kind} ${manifest.metadata.name}`);
  }
});

test('the schema check refuses a wrong manifest', async () => {
  const deployment = manifests().find(({ manifest }) => manifest.kind === 'Deployment')?.manifest as unknown as {
    spec: { replicas: unknown };
  } & Manifest;
  deployment.spec.replicas = 'one';
  const model = await modelOf(deployment);
  assert.throws(() => model.validate());
});

test('the kustomization names every manifest, and nothing that is missing', () => {
  const { resources } = parse(readFileSync(`${DEPLOY}kubernetes/kustomization.yaml`, 'utf8')) as {
    resources: string[];
  };
  const files = new Set(manifests().map(({ file }) => file));
  files.delete('secrets.example.yaml');
  assert.deepEqual([...resources].sort(), [...files].sort());
});

test('the alert rules do what their tests say', () => {
  const printed = execFileSync('bash', [`${ROOT}tests/servers/tools.sh`, 'promtool'], { encoding: 'utf8' });
  const promtool = /PROMTOOL=(\S+)/.exec(printed)?.[1];
  assert.ok(promtool, 'promtool is missing');
  execFileSync(promtool, ['test', 'rules', 'mysync-alerts.test.yaml'], { cwd: `${DEPLOY}prometheus`, stdio: 'pipe' });
});

test('every alert has a runbook section, and every section an alert', () => {
  const rules = parse(readFileSync(`${DEPLOY}prometheus/mysync-alerts.yaml`, 'utf8')) as {
    groups: { rules: { alert: string; annotations: { runbook: string } }[] }[];
  };
  const alerts = rules.groups.flatMap((group) => group.rules.map((rule) => rule.alert)).sort();
  const runbook = readFileSync(`${ROOT}docs/runbook/alerts.md`, 'utf8');
  const sections = [...runbook.matchAll(/^## (\S+)$/gm)].map((match) => match[1]).sort();
  assert.deepEqual(sections, alerts);
  for (const rule of rules.groups.flatMap((group) => group.rules)) {
    assert.equal(rule.annotations.runbook, `docs/runbook/alerts.md#${rule.alert.toLowerCase()}`);
  }
});

test("the pods' configuration is valid, with the secrets and the environment that the manifests give", () => {
  const { stringData } = parse(readFileSync(`${DEPLOY}kubernetes/secrets.example.yaml`, 'utf8')) as {
    stringData: Record<string, string>;
  };
  const printed = execFileSync(
    process.execPath,
    [
      `${ROOT}services/mysync/bin/mysync.js`,
      'config',
      'print',
      '--json',
      '--config',
      `${DEPLOY}kubernetes/mysync.yaml`,
    ],
    { encoding: 'utf8', env: { ...process.env, ...stringData, MYSYNC_TELEMETRY_HOST: '0.0.0.0' } },
  );
  const config = JSON.parse(printed) as { telemetry: { host: string }; sinks: Record<string, unknown> };
  assert.equal(config.telemetry.host, '0.0.0.0');
  const deployments = manifests().filter(({ manifest }) => manifest.kind === 'Deployment');
  const sinks = deployments.flatMap(({ manifest }) => {
    const { args } = (manifest as unknown as { spec: { template: { spec: { containers: { args: string[] }[] } } } })
      .spec.template.spec.containers[0] ?? { args: [] };
    return args[0] === 'writer' ? [args[args.indexOf('--sink') + 1] ?? ''] : [];
  });
  assert.deepEqual(sinks.sort(), Object.keys(config.sinks).sort());
});
