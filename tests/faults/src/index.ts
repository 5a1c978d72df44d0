export { runSuite, type SuiteOptions } from './suite.ts';
export { type Summary, summarize } from './summary.ts';
