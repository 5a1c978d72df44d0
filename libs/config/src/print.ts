import { stringify } from 'yaml';
import type { Config } from './schema/index.ts';
import { Secret } from './secret.ts';

/** The configuration as plain data: secrets as the reference they were given as, or `[secret]`. */
export function redactedConfig(config: Config): unknown {
  return redact(config);
}

export function printConfig(config: Config): string {
  return stringify(redactedConfig(config), { lineWidth: 0 });
}

function redact(value: unknown): unknown {
  if (value instanceof Secret) return value.origin === 'plain' ? '[secret]' : value.origin;
  if (Array.isArray(value)) return value.map(redact);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, redact(each)]));
}
