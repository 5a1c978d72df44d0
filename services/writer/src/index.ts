export { DEAD_LETTER_HEADER, type DeadLetter, readRecord } from './dead-letters.ts';
export { writerErrors } from './errors.ts';
export { type Act, type ActItem, LetterBox, type LetterBoxOptions, type StoredLetter } from './letter-box.ts';
export { type AppliedMarker, formatMarker, parseMarker } from './marker.ts';
export { causeOf, type ParkedKey, parkedName, parkedRow } from './parked-keys.ts';
export type { PartitionStatus } from './partition-loop.ts';
export { type DeskResult, PoisonDesk, type PoisonDeskOptions } from './poison-desk.ts';
export type { PoisonPolicy } from './sink-applier.ts';
export { Writer, type WriterOptions, type WriterStatus } from './writer.ts';
