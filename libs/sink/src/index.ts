export { sinkErrors } from './errors.ts';
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
