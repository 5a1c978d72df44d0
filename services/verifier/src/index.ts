export { Again } from './again.ts';
export { verifierErrors } from './errors.ts';
export { LostDeletionsRepair, type StandingReason } from './lost-deletions.ts';
export { Pipeline } from './pipeline.ts';
export { type Difference, isClean, type TableReport } from './report.ts';
export { SteadyTable } from './steady-table.ts';
export { TableVerifier } from './table-verifier.ts';
