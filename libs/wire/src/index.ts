export { ByteWriter } from './byte-writer.ts';
export {
  type ControlMessageOptions,
  controlKey,
  type EncodedControl,
  encodeControl,
  encodeTableMessage,
  type TableMessageOptions,
} from './control.ts';
export {
  type DeliveryNumbers,
  type DeliveryStamp,
  readDelivery,
  readNumbers,
  readOperation,
  stampDelivery,
} from './delivery.ts';
export { EncodedRow, type RowLender } from './encoded-row.ts';
export { wireErrors } from './errors.ts';
export { type DecodedKey, decodeKey } from './key-decoder.ts';
export { type ControlKind, type KeyKind, ROW_HASH_COLUMN } from './key-format.ts';
export { keyKind } from './key-kind.ts';
export type { BaseMessage, ControlMessage, MessageSource, RowMessage, TableMessage } from './message.ts';
export { MessageDecoder } from './message-decoder.ts';
export { type Json, messageToJson, rowToJson } from './message-json.ts';
export { partitionOf } from './partition.ts';
export { MESSAGE_HEADER, type MessageRecord, payloadOf, type RecordHeader, toRecord } from './record.ts';
export {
  type RowChange,
  RowEncoder,
  type RowName,
  type RowOperation,
  type RowValues,
} from './row-encoder.ts';
export { smallerRow } from './smaller-row.ts';
export { type CompileOptions, compileTable, type TablePlan } from './table-plan.ts';
export { makeTableSchema, schemaFingerprint, type TableSchemaOptions } from './table-schema.ts';
export { encodeTransaction, type TransactionBlock, type TransactionOptions } from './transaction-block.ts';
export { writeValue } from './typed-value.ts';
