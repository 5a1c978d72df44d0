export { isCertificateRefused } from './certificate.ts';
export { sinkErrors } from './errors.ts';
export type { InspectedRow, RowVerdict, SinkInspector, StoredRecord } from './inspector.ts';
export type {
  ApplyBatch,
  ApplyOutcome,
  ClearChange,
  DeleteChange,
  MarkerMove,
  PutChange,
  Refusal,
  Sink,
  SinkChange,
  StreamRef,
} from './port.ts';
