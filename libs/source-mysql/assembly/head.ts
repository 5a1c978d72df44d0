/**
 * What the messages of an event begin with: delivery (zeros), operation, source and schema. Equal for all of them but for the operation and
 * the ordinal, which are written over, as long as the ordinal takes as many bytes.
 */
import { BLOCK, HEAD, PLAN_SCHEMA, PLAN_SCHEMA_LENGTH } from '../src/transcribe/layout';
import { FIXED_ROOM, putVarint, room, varintSize } from './output';
import { plan } from './plan';

const HEAD_AT: usize = HEAD;
const BLOCK_AT: usize = BLOCK;

const DELIVERY_TAG: u32 = 0x0a;
const DELIVERY_LENGTH: u32 = 37;
/** Where the fields behind the delivery begin. */
const DELIVERY_END: usize = 39;
const OPERATION: u8 = 0x10;
const SOURCE: u8 = 0x1a;
const EVENT_OFFSET: u8 = 0x10;
const EVENT_FILE: u8 = 0x1a;
const ORDINAL: u8 = 0x20;

let length: usize = 0;
let ordinalAt: usize = 0;
let ordinalSize: usize = 0;
let blockBytes: usize = 0;
let fileBytes: usize = 0;
let eventOffset: u64 = 0;

/** Of the event to come: `blockBytes` of its transaction stand in BLOCK, behind them `fileBytes` of the name of its file, where it has one of its own. */
export function openHead(ofBlock: usize, ofFile: usize, offset: u64): void {
  blockBytes = ofBlock;
  fileBytes = ofFile;
  eventOffset = offset;
  ordinalSize = 0;
}

/** Returns where the head ends. */
export function putHead(out: usize, operation: u32, ordinal: u64): usize {
  const size = varintSize(ordinal);
  if (size !== ordinalSize) makeHead(size);
  room(out, length + FIXED_ROOM);
  memory.copy(out, HEAD_AT, length);
  store<u8>(out + DELIVERY_END + 1, <u8>operation);
  putVarint(out + ordinalAt, ordinal);
  return out + length;
}

function makeHead(size: usize): void {
  memory.fill(HEAD_AT, 0, DELIVERY_END);
  store<u16>(HEAD_AT, <u16>(DELIVERY_TAG | (DELIVERY_LENGTH << 8)));
  store<u8>(HEAD_AT + 2, 0x0d); // epoch
  store<u8>(HEAD_AT + 7, 0x15); // generation
  store<u8>(HEAD_AT + 12, 0x19); // base
  store<u8>(HEAD_AT + 21, 0x21); // sequence
  store<u8>(HEAD_AT + 30, 0x29); // version
  store<u8>(HEAD_AT + DELIVERY_END, OPERATION);
  const offsetSize: usize = eventOffset === 0 ? 0 : 1 + varintSize(eventOffset);
  const fileSize: usize = fileBytes === 0 ? 0 : 1 + varintSize(fileBytes) + fileBytes;
  let at = HEAD_AT + DELIVERY_END + 2;
  store<u8>(at, SOURCE);
  at = putVarint(at + 1, blockBytes + offsetSize + fileSize + 1 + size);
  memory.copy(at, BLOCK_AT, blockBytes);
  at += blockBytes;
  if (offsetSize > 0) {
    store<u8>(at, EVENT_OFFSET);
    at = putVarint(at + 1, eventOffset);
  }
  if (fileSize > 0) {
    store<u8>(at, EVENT_FILE);
    at = putVarint(at + 1, fileBytes);
    memory.copy(at, BLOCK_AT + blockBytes, fileBytes);
    at += fileBytes;
  }
  store<u8>(at, ORDINAL);
  ordinalAt = at + 1 - HEAD_AT;
  ordinalSize = size;
  const schema = <usize>load<u32>(plan, PLAN_SCHEMA_LENGTH);
  memory.copy(at + 1 + size, plan + <usize>load<u32>(plan, PLAN_SCHEMA), schema);
  length = at + 1 + size + schema - HEAD_AT;
}
