/** The floor: asks for the log up to its end and throws the bytes away. It cannot count rows: it says what it was told. */
import type { Duplex } from 'node:stream';
import { createConnection } from 'mysql2';
import { clientRange, processCpuSeconds, Stages } from '../log-client.ts';

const COM_BINLOG_DUMP = 0x12;
/** The server ends the stream where its log ends. */
const NON_BLOCK = 1;
const SERVER_ID = 3_900_000_004;
/** Of the packet that ends the stream: its header, its mark and two numbers. */
const END_BYTES = 9;
const END_MARK = 0xfe;
const MARK_BYTES = 1 << 20;

const { host, port, user, password, file, offset, rows } = clientRange();
const stages = new Stages(rows);
const connection = createConnection({ host, port, user, password });
await new Promise<void>((resolve, reject) => {
  const settings =
    'SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, @source_binlog_checksum = @@GLOBAL.binlog_checksum';
  connection.query(`${settings}, @mariadb_slave_capability = 4`, (error) => (error ? reject(error) : resolve()));
});
const { stream } = connection as unknown as { readonly stream: Duplex };
stream.removeAllListeners('data');

const name = Buffer.from(file);
const request = Buffer.alloc(4 + 11 + name.length);
request.writeUIntLE(11 + name.length, 0, 3);
request[4] = COM_BINLOG_DUMP;
request.writeUInt32LE(offset, 5);
request.writeUInt16LE(NON_BLOCK, 9);
request.writeUInt32LE(SERVER_ID, 11);
name.copy(request, 15);

/** How far it was, now and then: which of them is a quarter of the way shows at the end. */
const marks: { bytes: number; cpuSeconds: number }[] = [];
let bytes = 0;
await new Promise<void>((resolve, reject) => {
  stream.once('close', () => reject(new Error('the server closed the connection')));
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes >= marks.length * MARK_BYTES) marks.push({ bytes, cpuSeconds: processCpuSeconds() });
    const end = chunk.length - END_BYTES;
    if (end >= 0 && chunk[end] === END_BYTES - 4 && chunk[end + 1] === 0 && chunk[end + 4] === END_MARK) resolve();
  });
  stream.write(request);
});
const cpuSeconds = processCpuSeconds();
const quarter = marks.find((mark) => mark.bytes >= bytes / 4);
stages.tell('quarter', { rows: ((quarter?.bytes ?? 0) / bytes) * rows, sum: 0 }, quarter?.cpuSeconds);
stages.tell('end', { rows, sum: 0, bytes }, cpuSeconds);
await stages.measured();
process.exit(0);
