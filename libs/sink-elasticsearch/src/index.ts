export { elasticsearchErrors } from './errors.ts';
export type {
  ElasticsearchRule,
  ElasticsearchSinkOptions,
  ElasticsearchTls,
  FieldMapping,
} from './options.ts';
export { ElasticsearchSink } from './sink.ts';
