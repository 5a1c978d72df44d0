export { writerErrors } from './errors.ts';
export { type AppliedMarker, formatMarker, parseMarker } from './marker.ts';
export type { PartitionStatus } from './partition-loop.ts';
export { Writer, type WriterOptions, type WriterStatus } from './writer.ts';
