export { type DrillReport, type FaultReport, runDrill } from './drill.ts';
export { DrillProcess } from './drill-process.ts';
export { DrillTable } from './drill-table.ts';
export { drillErrors } from './errors.ts';
export { FaultProxy } from './fault-proxy.ts';
export { type Fault, frozen, killed, parsePlan, plannedFault, waysBroken } from './faults.ts';
