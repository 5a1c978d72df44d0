/**
 * Ways in: TLS with certificates of our own making, every way of authentication that the servers at hand have, with TLS and without, and several hosts of
 * one server. Each is a check, and a read of the log over the stream that was logged in.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { startServer, TcpProxy, type TestServer, until } from '@mysync/harness';
import type { MysqlSourceOptions, SourceTls } from '../options.ts';
import { FLAVORS, failureOf, readItems, rowsOf, TestDatabase } from '../testing.fixture.ts';

/** Two authorities, a server's certificate for an address and no name, and one of a client. */
class Certificates {
  readonly #folder = mkdtempSync(join(tmpdir(), 'mysync-tls-'));

  constructor() {
    for (const name of ['ca', 'stranger']) {
      this.#openssl(
        'req',
        '-x509',
        ...KEY,
        '-keyout',
        `${name}.key`,
        '-out',
        `${name}.pem`,
        '-days',
        '2',
        '-subj',
        `/CN=${name}`,
      );
    }
    for (const [name, extension] of [
      ['server', 'subjectAltName=IP:127.0.0.1'],
      ['client', 'extendedKeyUsage=clientAuth'],
    ] as const) {
      this.#openssl('req', ...KEY, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=the ${name}`);
      writeFileSync(this.path(`${name}.ext`), extension);
      const sign = ['x509', '-req', '-in', `${name}.csr`, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial'];
      this.#openssl(...sign, '-out', `${name}.pem`, '-days', '2', '-extfile', `${name}.ext`);
    }
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  pem(name: string): string {
    return readFileSync(this.path(name), 'utf8');
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }

  #openssl(...args: readonly string[]): void {
    execFileSync('openssl', args, { cwd: this.#folder, stdio: 'ignore' });
  }
}
const KEY = ['-newkey', 'rsa:2048', '-nodes'];

const PLUGINS = {
  mysql: ['caching_sha2_password'],
  mariadb: ['mysql_native_password', 'ed25519'],
} as const;

for (const flavor of FLAVORS) {
  describe(`logging in at ${flavor}`, { timeout: 170_000 }, () => {
    let certificates: Certificates;
    let server: TestServer;
    let db: TestDatabase;
    let id = 0;

    before(async () => {
      certificates = new Certificates();
      const files = { ca: 'ca.pem', cert: 'server.pem', key: 'server.key' };
      server = await startServer(flavor, {
        args: Object.entries(files).map(([option, name]) => `--ssl-${option}=${certificates.path(name)}`),
      });
      db = await TestDatabase.create(flavor, server);
      await db.run('CREATE TABLE t (id INT PRIMARY KEY)');
    });
    after(async () => {
      await db?.sql.end();
      await server?.wipe();
      certificates.remove();
    });

    async function user(name: string, how: string, require = ''): Promise<{ user: string; password: string }> {
      await db.run(`CREATE USER ${name}@'%' IDENTIFIED ${how} ${require}`, `GRANT ALL ON *.* TO ${name}@'%'`);
      return { user: name, password: PASSWORD };
    }
    /** Checks, and reads a row over the stream. */
    async function works(options: Partial<MysqlSourceOptions>): Promise<void> {
      const source = db.source(options);
      assert.equal((await source.identify()).flavor, flavor);
      const from = await source.currentPosition();
      id += 1;
      await db.run(`INSERT INTO t VALUES (${id})`);
      assert.deepEqual(
        rowsOf(await readItems(source, from)).map((row) => row.after?.['id']),
        [id],
      );
    }
    async function refused(options: Partial<MysqlSourceOptions>, code: string, text: RegExp): Promise<void> {
      const source = db.source(options);
      const from = await db.source().currentPosition();
      for (const work of [() => source.identify(), () => readItems(source, from, from)]) {
        const error = await failureOf(work());
        assert.ok(isMysyncError(error, code), String(error));
        assert.match(String(error), text);
        assert.equal(error.retriable, false);
        assert.equal(String(error).includes(PASSWORD), false);
      }
    }
    const at = (host: string) => ({ hosts: [{ host, port: db.port }] });
    const tls = (more: SourceTls = {}) => ({ tls: { ca: certificates.pem('ca.pem'), ...more } });

    it('checks the authority and the name of the certificate, and says what is wrong', async () => {
      const secure = await user('secure', `BY '${PASSWORD}'`, 'REQUIRE SSL');
      await works({ ...secure, ...tls() });
      // the certificate is for the address only
      await refused({ ...secure, ...tls(), ...at('localhost') }, 'SOURCE_TLS_FAILED', /localhost/);
      await works({ ...secure, ...tls({ verifyName: false }), ...at('localhost') });
      const strangers = { ca: certificates.pem('stranger.pem') };
      await refused({ ...secure, ...tls(strangers) }, 'SOURCE_TLS_FAILED', /certificate/i);
      await refused({ ...secure, ...tls({ ...strangers, verifyName: false }) }, 'SOURCE_TLS_FAILED', /certificate/i);
      await works({ ...secure, ...tls({ ...strangers, verify: false }), ...at('localhost') });
      await refused(secure, 'SOURCE_ACCESS_DENIED', /secure/);
    });

    it('shows a certificate of its own where the server wants one', async () => {
      const known = await user('known', `BY '${PASSWORD}'`, 'REQUIRE X509');
      await works({ ...known, ...tls({ cert: certificates.pem('client.pem'), key: certificates.pem('client.key') }) });
      await refused({ ...known, ...tls() }, 'SOURCE_ACCESS_DENIED', /known/);
    });

    for (const plugin of PLUGINS[flavor]) {
      it(`authenticates by ${plugin}, with TLS and without`, async () => {
        if (plugin === 'ed25519') await db.run("INSTALL SONAME 'auth_ed25519'");
        const how =
          flavor === 'mysql' ? `WITH ${plugin} BY '${PASSWORD}'` : `VIA ${plugin} USING PASSWORD('${PASSWORD}')`;
        for (const [name, secure] of [
          ['plain', {}],
          ['ciphered', tls()],
        ] as const) {
          const account = await user(`${name}_${plugin.slice(0, 8)}`, how);
          // the first time by the whole exchange, then by the server's cache where it has one
          await works({ ...account, ...secure });
          await works({ ...account, ...secure });
          await refused({ ...account, password: 'no', ...secure }, 'SOURCE_ACCESS_DENIED', /refuses user/);
          if (flavor === 'mysql') {
            await db.run('FLUSH PRIVILEGES');
            await works({ ...account, ...secure });
          }
        }
      });
    }

    it('takes the next of several hosts when one is down, also in mid-stream', async () => {
      await using first = await TcpProxy.open(db.port);
      await using second = await TcpProxy.open(db.port);
      const hosts = [first, second].map(({ port }) => ({ host: '127.0.0.1', port }));
      const source = db.source({ hosts });
      const from = await source.currentPosition();
      const seen: unknown[] = [];
      const stop = new AbortController();
      const done = (async () => {
        for await (const batch of source.stream({ from, signal: stop.signal })) {
          seen.push(...rowsOf(batch).map((row) => row.after?.['id']));
        }
      })();
      done.catch(() => undefined);
      try {
        await db.run('INSERT INTO t VALUES (1001)');
        await until('the row by the first', () => seen.length === 1);
        assert.equal(second.connections, 0);
        await first.close();
        await db.run('INSERT INTO t VALUES (1002)');
        await until('the row by the second', () => seen.length === 2);
        assert.ok(second.connections > 0);
        await first.listen();
        await second.close();
        await db.run('INSERT INTO t VALUES (1003)');
        await until('the row by the first again', () => seen.length === 3);
        assert.deepEqual(seen, [1001, 1002, 1003]);
      } finally {
        stop.abort();
        await done;
      }
      await first.close();
      const error = await failureOf(source.identify());
      assert.ok(isMysyncError(error, 'SOURCE_UNREACHABLE') && error.retriable, String(error));
      for (const { port } of hosts) assert.match(error.message, new RegExp(`127.0.0.1:${port}`));
    });
  });
}

const PASSWORD = 'pa55 wörd!';
