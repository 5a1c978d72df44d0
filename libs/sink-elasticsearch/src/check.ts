/** What `mysync check` says of a cluster. */
import { causeText, type Finding, isMysyncError } from '@mysync/core';
import { elasticsearchErrors } from './errors.ts';
import type { EsHttp } from './http.ts';
import { gcDeletesSeconds, indexInfo } from './index-info.ts';

export interface ClusterCheckOptions {
  readonly node: string;
  readonly gcDeletesSeconds: number;
}

type EsCode = keyof typeof elasticsearchErrors.entries;

/** Never throws: what fails is a finding. Looks at the cluster and at the indices that MySync has noted itself in. */
export async function checkCluster(http: EsHttp, options: ClusterCheckOptions): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const steps = [checkVersion, checkHealth, checkIndexes];
  for (const step of steps) {
    try {
      findings.push(...(await step(http, options)));
    } catch (error) {
      const known = isMysyncError(error) ? error : undefined;
      findings.push({
        level: 'error',
        code: known?.code ?? 'INTERNAL',
        message: `${options.node}: ${causeText(error)}`,
        remedy: known?.remedy ?? '',
      });
      if (step === checkVersion) break;
    }
  }
  return findings;
}

async function checkVersion(http: EsHttp): Promise<Finding[]> {
  const { body } = await http.request({ method: 'GET', path: '/' });
  const root = body as { readonly cluster_name?: string; readonly version?: { readonly number?: string } };
  const version = root.version?.number ?? '';
  const major = Number(version.split('.')[0]);
  if (major === 8 || major === 9) return [ok(`Elasticsearch ${version}, cluster '${root.cluster_name ?? ''}'`)];
  return [finding('error', 'ES_VERSION_UNSUPPORTED', `the server is of version '${version}'`)];
}

async function checkHealth(http: EsHttp): Promise<Finding[]> {
  const { body } = await http.request({ method: 'GET', path: '/_cluster/health', query: { timeout: '5s' } });
  const health = body as {
    readonly status?: string;
    readonly unassigned_primary_shards?: number;
    readonly number_of_data_nodes?: number;
  };
  const nodes = health.number_of_data_nodes ?? 0;
  if (health.status === 'red') {
    const count = health.unassigned_primary_shards ?? 0;
    return [finding('error', 'ES_HEALTH', `the cluster is red: ${count} primary shards are not assigned`)];
  }
  if (health.status === 'yellow') {
    return [
      finding('warning', 'ES_HEALTH', `the cluster is yellow: copies of shards are not assigned (${nodes} data nodes)`),
    ];
  }
  return [ok(`the cluster is green, ${nodes} data nodes`)];
}

async function checkIndexes(http: EsHttp, options: ClusterCheckOptions): Promise<Finding[]> {
  const { body } = await http.request({
    method: 'GET',
    path: '/_all',
    query: { flat_settings: 'true', filter_path: '*.settings,*.mappings._meta.mysync' },
  });
  const findings: Finding[] = [];
  let count = 0;
  for (const [name, raw] of Object.entries(body as Record<string, Parameters<typeof indexInfo>[1]>)) {
    const info = indexInfo(name, raw);
    if (info.owners.length === 0) continue;
    count++;
    if (gcDeletesSeconds(info.gcDeletes) < options.gcDeletesSeconds) {
      const message = `index '${name}' forgets deletions after ${info.gcDeletes ?? '60s'}`;
      findings.push(finding('warning', 'ES_GC_DELETES_LOW', message, name));
    }
    if (info.translogDurability?.toLowerCase() === 'async') {
      const message = `index '${name}' confirms writes before they are on disk`;
      findings.push(finding('warning', 'ES_TRANSLOG_ASYNC', message, name));
    }
    if (info.blocks.length > 0) {
      findings.push(
        finding('error', 'ES_READ_ONLY', `index '${name}' takes no writes: ${info.blocks.join(', ')}`, name),
      );
    }
  }
  return findings.length > 0 ? findings : [ok(`${count} indices of MySync are fit`)];
}

function ok(message: string): Finding {
  return { level: 'ok', code: 'OK', message, remedy: '' };
}

function finding(level: 'warning' | 'error', code: EsCode, message: string, index?: string): Finding {
  const { remedy } = elasticsearchErrors.entries[code];
  return {
    level,
    code,
    message,
    remedy: index === undefined ? remedy : remedy.replaceAll('/INDEX/', `/${encodeURIComponent(index)}/`),
  };
}
