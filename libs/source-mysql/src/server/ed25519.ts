/**
 * MariaDB's authentication plugin ed25519, which the client library does not have. A signature as RFC 8032 makes it, but for the secret: there it is the
 * hash of a seed of 32 bytes, here that of the password, whatever its length (MariaDB, plugin/auth_ed25519/client_ed25519.c), so the platform's own
 * cannot be used. The numbers are BigInts: not in constant time, some milliseconds a login.
 */
import { createHash } from 'node:crypto';

const P = 2n ** 255n - 19n;
/** Order of the base point. */
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const D = mod(-121665n * power(121666n, P - 2n));
const BASE_Y = mod(4n * power(5n, P - 2n));

interface Point {
  readonly x: bigint;
  readonly y: bigint;
  readonly z: bigint;
  readonly t: bigint;
}

const BASE = pointAt(15112221349535400772501151409588531511454012693041857206046113283949847762202n, BASE_Y);
const ZERO: Point = { x: 0n, y: 1n, z: 1n, t: 0n };

/** The signature of the server's nonce: 64 bytes. */
export function signWithPassword(password: string, nonce: Buffer): Buffer {
  const secret = sha512(Buffer.from(password, 'utf8'));
  secret[0] = (secret[0] as number) & 248;
  secret[31] = ((secret[31] as number) & 63) | 64;
  const scalar = littleEndian(secret.subarray(0, 32));
  const publicKey = encoded(times(scalar, BASE));
  const r = littleEndian(sha512(secret.subarray(32), nonce)) % L;
  const commitment = encoded(times(r, BASE));
  const challenge = littleEndian(sha512(commitment, publicKey, nonce)) % L;
  return Buffer.concat([commitment, bytesOf((r + challenge * scalar) % L)]);
}

function mod(value: bigint): bigint {
  const rest = value % P;
  return rest < 0n ? rest + P : rest;
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = mod(base);
  for (let left = exponent; left > 0n; left >>= 1n) {
    if ((left & 1n) === 1n) result = mod(result * square);
    square = mod(square * square);
  }
  return result;
}

function pointAt(x: bigint, y: bigint): Point {
  return { x, y, z: 1n, t: mod(x * y) };
}

/** RFC 8032, 5.1.4. */
function plus(p: Point, q: Point): Point {
  const a = mod((p.y - p.x) * (q.y - q.x));
  const b = mod((p.y + p.x) * (q.y + q.x));
  const c = mod(2n * p.t * q.t * D);
  const d = mod(2n * p.z * q.z);
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return { x: mod(e * f), y: mod(g * h), z: mod(f * g), t: mod(e * h) };
}

function times(scalar: bigint, point: Point): Point {
  let result = ZERO;
  let double = point;
  for (let left = scalar; left > 0n; left >>= 1n) {
    if ((left & 1n) === 1n) result = plus(result, double);
    double = plus(double, double);
  }
  return result;
}

/** y, with the lowest bit of x as the highest. */
function encoded({ x, y, z }: Point): Buffer {
  const inverse = power(z, P - 2n);
  const bytes = bytesOf(mod(y * inverse));
  bytes[31] = (bytes[31] as number) | (Number(mod(x * inverse) & 1n) << 7);
  return bytes;
}

function bytesOf(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse();
}

function littleEndian(bytes: Buffer): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
}

function sha512(...parts: readonly Buffer[]): Buffer {
  const hash = createHash('sha512');
  for (const part of parts) hash.update(part);
  return hash.digest();
}
