/**
 * The declaration as a tree that the other parts walk: environment names, flags, help and the reference page are derived from
 * it, so no option is described twice.
 */
import { z } from 'zod';
import { type OptionInfo, optionInfo } from './schema/elements.ts';
import { configSchema } from './schema/index.ts';

interface Common {
  readonly description: string;
  /** Must be given: no default, not optional. */
  readonly required: boolean;
  /** The declared default, or undefined. */
  readonly default: unknown;
}

export interface SectionNode extends Common {
  readonly kind: 'section';
  readonly keys: ReadonlyMap<string, OptionNode>;
  readonly toggle: boolean;
}

/** Sections of which `key` chooses one. */
export interface VariantsNode extends Common {
  readonly kind: 'variants';
  readonly key: string;
  readonly variants: ReadonlyMap<string, SectionNode>;
}

interface MapNode extends Common {
  readonly kind: 'map';
  readonly value: OptionNode;
  readonly placeholder: string;
}

interface ListNode extends Common {
  readonly kind: 'list';
  readonly item: OptionNode;
}

export interface ValueNode extends Common {
  readonly kind: 'value';
  readonly type: 'text' | 'integer' | 'boolean' | 'choice' | 'secret' | 'any';
  readonly choices: readonly string[];
  readonly min: number | null;
  readonly max: number | null;
  /** How the value looks, for texts of a form of their own. */
  readonly form: string;
}

export type OptionNode = SectionNode | VariantsNode | MapNode | ListNode | ValueNode;

function buildTree(schema: z.core.$ZodType): OptionNode {
  return build(schema, { required: true, default: undefined }, undefined);
}

let tree: SectionNode | undefined;

/** The tree of the whole configuration. */
export function optionTree(): SectionNode {
  if (tree === undefined) {
    const built = buildTree(configSchema);
    if (built.kind !== 'section') throw new TypeError('the configuration is a section');
    tree = built;
  }
  return tree;
}

type Presence = Pick<Common, 'required' | 'default'>;

function build(schema: z.core.$ZodType, presence: Presence, outer: OptionInfo | undefined): OptionNode {
  const info = outer ?? optionInfo.get(schema as z.ZodType);
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    return build(schema.def.innerType, { required: false, default: schema.def.defaultValue }, info);
  }
  if (schema instanceof z.ZodExactOptional) return build(schema.def.innerType, { ...presence, required: false }, info);
  const common = { description: info?.description ?? '', ...presence };
  if (schema instanceof z.ZodObject) {
    const keys = new Map(Object.entries(schema.shape).map(([key, value]) => [key, buildTree(value)]));
    return { kind: 'section', ...common, keys, toggle: info?.toggle ?? false };
  }
  if (schema instanceof z.ZodDiscriminatedUnion) return variants(schema, common);
  if (schema instanceof z.ZodRecord) {
    return { kind: 'map', ...common, value: buildTree(schema.def.valueType), placeholder: info?.placeholder ?? 'NAME' };
  }
  if (schema instanceof z.ZodArray) return { kind: 'list', ...common, item: buildTree(schema.def.element) };
  return { kind: 'value', ...common, ...valueType(schema), form: info?.form ?? '' };
}

function variants(schema: z.ZodDiscriminatedUnion, common: Common): VariantsNode {
  const key = schema.def.discriminator;
  const found = new Map<string, SectionNode>();
  for (const option of schema.def.options) {
    const node = buildTree(option);
    const name = node.kind === 'section' ? node.keys.get(key) : undefined;
    const choiceName = name?.kind === 'value' ? name.choices[0] : undefined;
    if (node.kind === 'section' && choiceName !== undefined) found.set(choiceName, node);
  }
  return { kind: 'variants', ...common, key, variants: found };
}

function valueType(schema: z.core.$ZodType): Pick<ValueNode, 'type' | 'choices' | 'min' | 'max'> {
  const plain = { choices: [], min: null, max: null };
  if (schema instanceof z.ZodEnum) return { ...plain, type: 'choice', choices: schema.options.map(String) };
  if (schema instanceof z.ZodLiteral) return { ...plain, type: 'choice', choices: [...schema.values].map(String) };
  if (schema instanceof z.ZodNumber) {
    return { ...plain, type: 'integer', min: schema.minValue, max: schema.maxValue };
  }
  if (schema instanceof z.ZodBoolean) return { ...plain, type: 'boolean' };
  if (schema instanceof z.ZodString) return { ...plain, type: 'text' };
  if (schema instanceof z.ZodCustom) return { ...plain, type: 'secret' };
  return { ...plain, type: 'any' };
}

/** The option that chooses the variant. */
export function choosingOption(node: VariantsNode): ValueNode {
  const choices = [...node.variants.keys()];
  const description = `Which of them: ${choices.join(', ')}.`;
  const bounds = { min: null, max: null, form: '' };
  return { kind: 'value', type: 'choice', choices, description, required: true, default: undefined, ...bounds };
}

/** The allowed values of an option in words, or ''. */
export function allowedValues(node: OptionNode): string {
  if (node.kind === 'variants') return `a section with ${node.key}: ${[...node.variants.keys()].join(', ')}`;
  if (node.kind === 'section') return node.toggle ? 'true, false or a section' : 'a section';
  if (node.kind === 'map') return `a section of ${node.placeholder}: ${allowedValues(node.value)}`;
  if (node.kind === 'list') return `a list of: ${allowedValues(node.item)}`;
  switch (node.type) {
    case 'boolean':
      return 'true, false';
    case 'choice':
      return node.choices.join(', ');
    case 'secret':
      return 'text, { env: NAME } or { file: PATH }';
    case 'text':
      return node.form === '' ? 'text' : node.form;
    case 'any':
      return 'anything';
    case 'integer':
      return bounds(node.min, node.max);
  }
}

function bounds(min: number | null, max: number | null): string {
  const limitless = max === null || max === Number.MAX_SAFE_INTEGER;
  if (limitless) return min === null ? 'a whole number' : `a whole number from ${min}`;
  return `a whole number from ${min ?? 0} to ${max}`;
}

/** True when a secret may stand at or below this option: its value is then never shown. */
export function holdsSecret(node: OptionNode): boolean {
  switch (node.kind) {
    case 'value':
      return node.type === 'secret';
    case 'list':
      return holdsSecret(node.item);
    case 'map':
      return holdsSecret(node.value);
    case 'section':
      return [...node.keys.values()].some(holdsSecret);
    case 'variants':
      return [...node.variants.values()].some(holdsSecret);
  }
}
