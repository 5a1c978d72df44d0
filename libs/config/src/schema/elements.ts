/**
 * The building blocks of the declaration: every option is one zod schema with a description. Everything else (file,
 * environment, flags, help, reference page) is read off these by `option-tree.ts`.
 */
import { isMysyncError } from '@mysync/core';
import { compileTablePatterns, parseTemplate } from '@mysync/mapping';
import { z } from 'zod';
import { Secret } from '../secret.ts';

export interface OptionInfo {
  /** Whole sentences: what it does, what it is measured in, what it costs. */
  readonly description: string;
  /** A section that `true` switches on as it is, and `false` off. */
  readonly toggle?: boolean;
  /** What a name in a map stands for, for paths in help: `NAME`, `COLUMN` … */
  readonly placeholder?: string;
  /** For values that zod does not describe: how one looks. */
  readonly form?: string;
}

export const optionInfo = z.registry<OptionInfo>();

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;

export function isName(text: string): boolean {
  return NAME.test(text);
}

export function text(description: string) {
  return z.string().min(1).register(optionInfo, { description });
}

/** A text of a form of its own: `accepts` returns what is wrong, or null. */
export function formedText(description: string, form: string, accepts: (text: string) => string | null) {
  return z
    .string()
    .check((context) => {
      const wrong = accepts(context.value);
      if (wrong !== null) context.issues.push({ code: 'custom', message: wrong, input: context.value });
    })
    .register(optionInfo, { description, form });
}

export function choice<const T extends readonly [string, ...string[]]>(choices: T, description: string) {
  return z.enum(choices).register(optionInfo, { description });
}

export function integer(description: string, bounds: { min: number; max?: number }) {
  const schema = z
    .int()
    .min(bounds.min)
    .max(bounds.max ?? Number.MAX_SAFE_INTEGER);
  return schema.register(optionInfo, { description });
}

/** A duration in milliseconds; 24 days at most, which is what a timer holds, unless `max` says more. */
export function milliseconds(description: string, bounds: { min: number; max?: number } = { min: 1 }) {
  return integer(description, { max: 2 ** 31 - 1, ...bounds });
}

export function flag(description: string) {
  return z.boolean().register(optionInfo, { description });
}

/** Text that stands in the file, in an environment variable or in a file of its own; never printed. */
export function secret(description: string) {
  return z.custom<Secret>((value) => value instanceof Secret).register(optionInfo, { description });
}

/** Names of columns, patterns and the like; a single one may stand without brackets. */
export function texts(description: string, least = 0) {
  return z.array(z.string().min(1)).min(least).register(optionInfo, { description });
}

/** A check whose errors keep their own code and remedy. */
function catalogueCheck<T>(check: (value: T) => unknown): z.core.CheckFn<T> {
  return (context) => {
    try {
      check(context.value);
    } catch (error) {
      if (!isMysyncError(error)) throw error;
      context.issues.push({
        code: 'custom',
        message: error.message,
        input: context.value,
        params: { code: error.code, remedy: error.remedy },
      });
    }
  };
}

export function tablePatterns(description: string) {
  const pattern = z
    .string()
    .check(catalogueCheck((value: string) => compileTablePatterns([value])))
    .register(optionInfo, { description: 'A pattern.', form: 'DATABASE.TABLE with * and ?' });
  return z.array(pattern).min(1).register(optionInfo, { description });
}

/** A template of a target name; whether it fits a table is known only when the table is. */
export function template(description: string) {
  return z
    .string()
    .check(catalogueCheck(parseTemplate))
    .register(optionInfo, { description, form: 'text with placeholders' });
}

export function columnMap<T extends z.ZodType>(value: T, description: string, placeholder = 'COLUMN') {
  return z.record(z.string(), value).register(optionInfo, { description, placeholder });
}

export function named<T extends z.ZodType>(value: T, description: string) {
  const name = z.string().regex(NAME);
  return z.record(name, value).register(optionInfo, { description, placeholder: 'NAME' });
}

export function section<T extends z.core.$ZodLooseShape>(
  shape: T,
  description: string,
  extra: { toggle?: boolean } = {},
) {
  return z.strictObject(shape).register(optionInfo, { description, ...extra });
}

/** The TLS settings that every client has: left out, the connection is plain. */
export function tls() {
  return section(tlsShape(), TLS_DESCRIPTION, { toggle: true });
}

/** Those towards MySQL, whose own certificates are for a made-up name. */
export function sqlTls() {
  return section(
    {
      ...tlsShape(),
      verifyName: flag(
        'false accepts a certificate for another name than the host, as long as one of the authorities has signed it: those that MySQL makes for itself have no host in them.',
      ).default(true),
    },
    TLS_DESCRIPTION,
    { toggle: true },
  );
}

const TLS_DESCRIPTION =
  'Encrypts the connection: `true` with the authorities of the system, or a section. Left out: not encrypted.';

function tlsShape() {
  return {
    ca: secret(
      'Certificate authorities that the server is checked against, as PEM. Default: those of the system.',
    ).exactOptional(),
    cert: secret('Our certificate, as PEM, where the server asks for one.').exactOptional(),
    key: secret('The private key of our certificate, as PEM.').exactOptional(),
    verify: flag('false accepts any certificate: the connection is then encrypted, but may lead to anybody.').default(
      true,
    ),
  };
}

/** What is wrong with `host` or `host:port`, or null. */
export function hostProblem(address: string, portNeeded: boolean): string | null {
  const match = /^(?:\[[0-9A-Fa-f:.]+\]|[^\s:[\]/@]+)(?::(\d{1,5}))?$/.exec(address);
  if (match === null) return 'is not an address';
  if (match[1] === undefined) return portNeeded ? 'lacks the port' : null;
  const port = Number(match[1]);
  return port >= 1 && port <= 65_535 ? null : 'has a port beyond 65535';
}

/** What is wrong with an http(s) address, or null. */
export function urlProblem(address: string, protocols: readonly string[]): string | null {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null) return 'is not a URL';
  if (!protocols.includes(url.protocol))
    return `does not begin with ${protocols.map((name) => `${name}//`).join(' or ')}`;
  if (url.username !== '' || url.password !== '') return 'holds a user or password: write them as options of their own';
  return null;
}
