/**
 * What the transcriber in `assembly/` and its host share: where things lie in the module's memory, how a table's plan is laid out, and the
 * numbers of walkers and failures. Plain constants, since two compilers read this file.
 */

const MIB = 0x10_0000;

/** Numbers of the last call. */
const STATE = 0x4000;
/** What messages of a transaction share, and behind it the name of the event's file. */
export const BLOCK = 0x8000;
export const BLOCK_BYTES = 0x8000;
/** Where each record ends, and what else is to know of it: RECORD_BYTES each. Room for all that a slab takes, and for all that come before FLUSH_BYTES are full. */
export const RECORDS = 0x10000;
/** Where the values of an image begin, before and after; four bytes each. */
export const PLACES_BEFORE = 0x40000;
export const PLACES_AFTER = 0x48000;
/** A table of more columns than any server has is left to the reference. */
export const MOST_COLUMNS = 4096;
/** All that is equal for the rows of an event. */
export const HEAD = MIB;
export const HEAD_BYTES = MIB;
export const PLANS = 2 * MIB;
export const PLANS_BYTES = 6 * MIB;
/** Of each area a walker may read or write so many bytes too far. */
const SLACK = 64;
export const INPUT = 8 * MIB;
export const INPUT_BYTES = 4 * MIB - SLACK;
/** Records go here when they cannot be written where they stay: the host copies them. */
export const OUTPUT = 12 * MIB;
export const OUTPUT_BYTES = 8 * MIB - SLACK;
/** They are handed over when they take so many bytes, so that they are copied while they are still in the processor's cache. */
export const FLUSH_BYTES = 0xc000;
/** Where records stay: each slab is written again once nobody has a record in it. As many as a reader's windows and its open transaction take by default. */
export const SLABS = 20 * MIB;
export const SLAB_BYTES = 0x10000;
export const SLAB_ROOM = SLAB_BYTES - SLACK;
export const SLAB_COUNT = 384;
export const MEMORY_PAGES = (SLABS + SLAB_COUNT * SLAB_BYTES) / 0x10000;

/** Of the rows: the first that is in no record yet. */
export const STATE_ROW = STATE + 0;
/** Where the next value begins: a host that reads one moves it. */
export const STATE_AT = STATE + 4;
export const STATE_RECORDS = STATE + 8;
/** As many bytes as the next record takes, to go by those before it. */
export const STATE_EXPECTED = STATE + 12;
/** Ordinal of the next record; a double. */
export const STATE_ORDINAL = STATE + 16;

/** Of a record, all counted from where the host has records begin: where its key begins, where it ends; its partition hash; 1 when it deletes. */
export const RECORD_KEY = 0;
export const RECORD_END = 4;
export const RECORD_HASH = 8;
export const RECORD_DELETES = 12;
export const RECORD_BYTES = 16;

export const INSERT = 1;
export const UPDATE = 2;
export const DELETE = 3;

/** A plan: numbers of four bytes; places within it are counted from its beginning. */
export const PLAN_COLUMNS = 0;
export const PLAN_COLUMN_COUNT = 4;
export const PLAN_SCHEMA = 8;
export const PLAN_SCHEMA_LENGTH = 12;
export const PLAN_KEY_PREFIX = 16;
export const PLAN_KEY_PREFIX_LENGTH = 20;
/** KEY_PART_BYTES each; none: the key is the hash of the row. */
export const PLAN_KEY = 24;
export const PLAN_KEY_COUNT = 28;
/** Numbers of columns; none: the key chooses the partition. */
export const PLAN_PARTITION = 32;
export const PLAN_PARTITION_COUNT = 36;
export const PLAN_HASH_SEED = 40;
export const PLAN_HEAD_BYTES = 44;

export const KEY_PART_COLUMN = 0;
export const KEY_PART_NAME = 4;
export const KEY_PART_NAME_LENGTH = 8;
export const KEY_PART_BYTES = 12;

/** A column: which walker (a byte), its place in the table, and what the walker needs. */
export const COLUMN_WALK = 0;
/** A byte. Of the length in front of a value; of the number of an ENUM or SET. */
export const COLUMN_LENGTH_BYTES = 1;
/** Two bytes. DECIMAL: how many groups of digits in front of the point, and behind it. */
export const COLUMN_WHOLE_GROUPS = 2;
export const COLUMN_FRACTION_GROUPS = 3;
export const COLUMN_INDEX = 4;
/** Bytes of a BINARY, BIT or DECIMAL; fractional digits of a time; members of an ENUM or SET. */
export const COLUMN_SIZE = 8;
/** Where the rest is. DECIMAL: digits of each group, a byte each. ENUM, SET: members. Charset of single bytes: its table. */
export const COLUMN_DATA = 12;
export const COLUMN_BYTES = 16;

/** A member: where its text is, and how long. */
export const MEMBER_TEXT = 0;
export const MEMBER_LENGTH = 4;
export const MEMBER_BYTES = 8;

/** To add a type is to add a walker here, in `assembly/walk.ts` and in `compile-columns.ts`. */
export const WALK_REFERENCE = 0;
export const WALK_INT8 = 1;
export const WALK_INT16 = 2;
export const WALK_INT24 = 3;
export const WALK_INT32 = 4;
export const WALK_INT64 = 5;
export const WALK_UINT8 = 6;
export const WALK_UINT16 = 7;
export const WALK_UINT24 = 8;
export const WALK_UINT32 = 9;
export const WALK_UINT64 = 10;
export const WALK_FLOAT = 11;
export const WALK_DOUBLE = 12;
export const WALK_DECIMAL = 13;
export const WALK_YEAR = 14;
export const WALK_BIT = 15;
export const WALK_DATE = 16;
export const WALK_TIME = 17;
export const WALK_DATETIME = 18;
export const WALK_TIMESTAMP = 19;
export const WALK_BYTES = 20;
export const WALK_BINARY = 21;
export const WALK_UTF8 = 22;
export const WALK_SINGLE_BYTES = 23;
export const WALK_ASCII_OR_REFERENCE = 24;
export const WALK_ENUM = 25;
export const WALK_SET = 26;
export const WALK_JSON = 27;

/** The rows end within a value. */
export const FAIL_SHORT = 1;
/** The output has no room for a row. */
export const FAIL_ROOM = 2;
export const FAIL_DECIMAL = 3;
export const FAIL_YEAR = 4;
export const FAIL_MICROSECONDS = 5;
export const FAIL_HOURS = 6;
export const FAIL_BINARY = 7;
export const FAIL_MEMBER = 8;
export const FAIL_JSON = 9;
export const FAIL_JSON_DEPTH = 10;
export const FAIL_JSON_TWICE = 11;
export const FAIL_JSON_LENGTH = 12;
