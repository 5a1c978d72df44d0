export { mappingErrors } from './errors.ts';
export { compileRules, compileTablePatterns, firstMatchingRule, type TableRule } from './pattern.ts';
export {
  columnIndex,
  compileJsonWriter,
  compileProjection,
  type Mask,
  maskValue,
  type ProjectedColumn,
  type ProjectionRule,
} from './projection.ts';
export { didYouMean } from './suggest.ts';
export {
  compileTemplate,
  parseTemplate,
  type RowTemplate,
  type TemplateOptions,
  type TemplatePart,
} from './template.ts';
export {
  type BytesText,
  bytesText,
  compileJsonValue,
  type DecimalsJson,
  isDecimalColumn,
  isJsonColumn,
  type JsonOptions,
  jsonValue,
  valueText,
} from './value.ts';
