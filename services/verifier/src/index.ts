export { verifierErrors } from './errors.ts';
export { LostDeletionsRepair, type LostDeletionsRepairOptions, type StandingReason } from './lost-deletions.ts';
export { Pipeline, type PipelineOptions } from './pipeline.ts';
export { type Difference, type DifferenceKind, type Hindrance, isClean, type TableReport } from './report.ts';
export { TableVerifier, type TableVerifierOptions } from './table-verifier.ts';
