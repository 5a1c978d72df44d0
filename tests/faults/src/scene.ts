/** One seed's pipeline on the stage: its processes, configuration, tables and watch. */
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { randomName, stopAtExit, textConnection, until } from '@mysync/harness';
import { Actor, type Role } from './actor.ts';
import { RedisClusterEye } from './cluster-eye.ts';
import { EmbeddedLogEye } from './embedded-log-eye.ts';
import type { Findings } from './findings.ts';
import { KafkaEye } from './kafka-eye.ts';
import { Load, TABLES } from './load.ts';
import type { LogEye, LoggedMessage } from './log-eye.ts';
import { FORGETFUL_TOPIC, type Setting, type SinkName, storeOf } from './setting.ts';
import { ElasticEye, RedisEye, type SinkEye } from './sink-eye.ts';
import { BROKERS, type Stage } from './stage.ts';
import { chooseTarget } from './targets.ts';
import { tidy } from './tidy.ts';
import { Watch } from './watch.ts';

const DISK_MB = 400;
/** Longer than the others need for another leader. */
const BROKERS_AWAY_MS = 15_000;
/** A load that has written nothing for so long, or a sink that could not be looked at, is no measure of what MySync does. */
const BLIND_MS = 15_000;

export interface SceneOptions {
  readonly stage: Stage;
  readonly setting: Setting;
  readonly seed: number;
  /** Configuration and logs of the processes go here. */
  readonly folder: string;
  /** Path of libfaketime; '' where there is none. */
  readonly clockLibrary: string;
  readonly findings: Findings;
}

export class Scene {
  readonly stage: Stage;
  readonly setting: Setting;
  readonly seed: number;
  readonly folder: string;
  readonly database = randomName('f');
  readonly load: Load;
  readonly watch: Watch;
  readonly eyes: readonly SinkEye[];
  readonly readers: Actor[] = [];
  readonly writers: Actor[] = [];
  /** A process that ends with exit code 1 and such a text is started again, while the fault that explains it lasts. */
  excuse: RegExp | null = null;
  /** Records that others put into the log, as PARTITION:OFFSET. */
  readonly strangers = new Set<string>();
  readonly findings: Findings;
  /** Rows and looks that were not as they had to be. */
  readonly counts = { lost: 0, wrong: 0, backward: 0 };
  /** After what the sinks followed, but not within a second. */
  readonly slow: string[] = [];
  readonly #clockLibrary: string;
  /** Every process that there ever was, also those that others have taken the place of. */
  readonly #made: Actor[] = [];
  /** While the disk is mounted: takes back that our exit unmounts it. */
  #forgetDisk: (() => void) | null = null;
  #groups = 1;
  #names = 0;
  #logIsMade = false;

  private constructor({ stage, setting, seed, folder, clockLibrary, findings }: SceneOptions) {
    this.stage = stage;
    this.setting = setting;
    this.seed = seed;
    this.folder = folder;
    this.#clockLibrary = clockLibrary;
    this.findings = findings;
    const { rowsPerSecond, partitions } = setting;
    this.load = new Load({ address: this.address, database: this.database, seed, rowsPerSecond });
    this.eyes = setting.sinks.map((sink) => this.#eye(sink));
    this.watch = new Watch({
      seed,
      eyes: this.eyes,
      openLog: () => this.#openLog(),
      groupOf: (sink) => `g${this.#groups}-${sink}-${this.database}`,
      topic: this.database,
      partitions,
      readCheckpoint: (log) => this.#readCheckpoint(log),
      never: this.load.never,
      sample: chooseTarget,
      noteMemory: () => {
        for (const made of this.#made) made.notePeak();
      },
    });
  }

  /** Tables are there and filled; nothing of MySync runs yet. Nothing is left where that fails. */
  static async set(options: SceneOptions): Promise<Scene> {
    const { stage, setting, folder } = options;
    await mkdir(folder, { recursive: true });
    await stage.need(setting.source);
    for (const sink of setting.sinks) await stage.need(storeOf(setting, sink));
    if (setting.transport === 'kafka') await stage.need('kafka');
    const scene = new Scene(options);
    try {
      await scene.#prepare();
    } catch (error) {
      await scene.clear(true);
      throw error;
    }
    return scene;
  }

  async #prepare(): Promise<void> {
    const { dataFolder, setting } = this;
    await mkdir(dataFolder, { recursive: true });
    if (setting.ownDisk) {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m`, 'tmpfs', dataFolder], { stdio: 'pipe' });
      // also while somebody still has a file open there
      this.#forgetDisk = stopAtExit(() => void execFileSync('umount', ['-l', dataFolder], { stdio: 'pipe' }));
    }
    await this.configure();
    if (setting.ownClock) await this.setClock(0);
    if (setting.transport === 'kafka' && setting.shortRetention) await this.#makeForgetfulTopic();
    await this.load.prepare();
    const { oneProcess, writers, sinks } = setting;
    this.readers.push(this.actor(oneProcess ? 'run' : 'reader', null));
    if (oneProcess) return;
    for (const sink of sinks) {
      for (let i = 0; i < writers; i += 1) this.writers.push(this.actor('writer', sink));
    }
  }

  get dataFolder(): string {
    return join(this.folder, 'data');
  }

  get configFile(): string {
    return join(this.folder, 'mysync.json');
  }

  get actors(): readonly Actor[] {
    return [...this.readers, ...this.writers];
  }

  get address() {
    const server = this.stage.server(this.setting.source);
    return {
      host: server.get('MYSQL_HOST'),
      port: Number(server.get('MYSQL_PORT')),
      user: server.get('MYSQL_USER'),
      password: server.get('MYSQL_PASSWORD'),
    };
  }

  /** Most memory of each process that there ever was, by name, in MB; also of those that others have taken the place of. */
  get peaks(): readonly (readonly [string, number])[] {
    return this.#made.map(({ name, peakMb }) => [name, peakMb]);
  }

  actor(role: Role, sink: SinkName | null): Actor {
    this.#names += 1;
    const actor = new Actor({
      name: `${role}${this.#names}`,
      role,
      sink,
      configFile: this.configFile,
      logFolder: this.folder,
      env: this.setting.ownClock ? this.#clockEnv() : {},
      onDeath: (what, printed) => {
        if (this.excuse?.test(printed) === true) return true;
        this.findings.complain(what);
        return false;
      },
      onNoStart: (error) => this.findings.take(error),
    });
    this.#made.push(actor);
    return actor;
  }

  /** Whoever is frozen just now is woken: who holds the embedded log's write lock keeps another from starting and from stopping. */
  async stopInOrder(actor: Actor): Promise<void> {
    for (const other of this.#made) other.signal('SIGCONT');
    const complaint = await actor.stop();
    if (complaint !== null) this.findings.complain(complaint);
  }

  /** Shifts the wall clock of every process by so many seconds; they see it within a second. */
  async setClock(seconds: number): Promise<void> {
    const sign = seconds < 0 ? '-' : '+';
    await writeFile(join(this.folder, 'clock'), `${sign}${Math.abs(seconds)}\n`);
  }

  /** Next offset of each partition of the log. Where another fault has killed the brokers, they are started: it cannot end before the one that asks has struck. */
  async logEnds(): Promise<readonly number[]> {
    const log = await this.watch.log();
    const end = performance.now() + BROKERS_AWAY_MS;
    return await until('the ends of the log', async () => {
      if (this.setting.transport === 'kafka' && performance.now() > end) await this.stage.server('kafka').up();
      return await log.ends();
    });
  }

  /** What was seen all along, as findings. Once, at the end. */
  takeStock(): void {
    const { counts, findings, watch } = this;
    const { backward, wrong, ahead } = watch;
    counts.backward += backward.length;
    counts.wrong += wrong.length + ahead.length;
    for (const texts of [backward, wrong, ahead]) findings.complain(...texts.slice(0, 5));
  }

  /** Why the sinks cannot be judged by the probes just now; null: they can. Whoever keeps the load from writing, nothing can be said of MySync then. */
  blindness(): string | null {
    const { probedMs, trouble } = this.load;
    const age = Date.now() - probedMs;
    if (age > BLIND_MS)
      return `the load has written no probe for ${Math.round(age / 1000)} s${trouble && `: ${trouble}`}`;
    return this.watch.blindness(BLIND_MS);
  }

  /** A record of a stranger: the newest message of a partition once more, with a number far ahead. */
  async strangerWrites(): Promise<void> {
    const log = await this.watch.log();
    if (!(log instanceof KafkaEye)) return;
    const newest = new Map<number, LoggedMessage>();
    await log.read((message) => {
      if (!message.tombstone) newest.set(message.partition, message);
    });
    for (const { partition, key, message } of newest.values()) {
      const copy = Buffer.from(message);
      copy.writeBigUInt64LE(copy.readBigUInt64LE(22) + 1000n, 22);
      this.strangers.add(`${partition}:${await log.put(partition, key, copy)}`);
    }
  }

  /** Ids of the brokers that lead a partition of the topic. */
  async leaders(): Promise<readonly number[]> {
    const log = await this.watch.log();
    return log instanceof KafkaEye ? await log.leaders() : [];
  }

  /** Asks Redis, which another fault may have stopped: then it is started first. */
  async redisCli(args: readonly string[]): Promise<string> {
    const redis = this.stage.server('redis');
    await redis.up();
    return await redis.client('cli', args);
  }

  /** Has every partition of the topic led by another broker, with nobody dead. */
  async moveLeaders(): Promise<void> {
    const log = await this.watch.log();
    if (log instanceof KafkaEye) await log.moveLeaders();
  }

  /** How far each partition of the embedded log was compacted. */
  async logCleaned(): Promise<readonly number[]> {
    return (await this.watch.log()).cleaned();
  }

  /** Nobody looks at the log until MySync has made it again. */
  async closeLog(): Promise<void> {
    this.#logIsMade = false;
    await this.watch.closeLog();
  }

  /** The sinks are read from the log's beginning by writers that start from now on. */
  async newGroup(): Promise<void> {
    this.#groups += 1;
    await this.configure();
  }

  async configure(): Promise<void> {
    await writeFile(this.configFile, JSON.stringify(this.#config(), null, 1));
  }

  /** No process is left; gives what went wrong with that. */
  async killAll(): Promise<readonly string[]> {
    return await tidy(
      this.#made.map((actor) => [
        `${actor.name} could not be ended`,
        async () => {
          await actor.kill();
          await actor.settled();
        },
      ]),
    );
  }

  /** Once no process is left: everything is gone; logs and configuration stay when they are to be kept. Gives what went wrong with that. */
  async clear(keep: boolean): Promise<readonly string[]> {
    const cleared = await tidy([
      ['the load did not stop', () => this.load.stop()],
      ['the watch did not stop', () => this.watch.stop()],
      ['could not unmount', async () => this.#unmountDisk()],
    ]);
    const removed = keep
      ? []
      : await tidy([['could not be removed', () => rm(this.folder, { recursive: true, force: true })]]);
    return [...cleared, ...removed];
  }

  #unmountDisk(): void {
    if (this.#forgetDisk === null) return;
    const { dataFolder } = this;
    let trouble: unknown = null;
    try {
      execFileSync('umount', [dataFolder], { stdio: 'pipe' });
    } catch (error) {
      trouble = error;
      execFileSync('umount', ['-l', dataFolder], { stdio: 'pipe' });
    }
    this.#forgetDisk();
    this.#forgetDisk = null;
    if (trouble !== null) throw trouble;
  }

  /** The tables and their copies are gone from the servers. */
  async drop(): Promise<void> {
    const sql = await textConnection(this.address);
    await sql.query(`DROP DATABASE IF EXISTS \`${this.database}\`; DROP DATABASE IF EXISTS \`${this.database}_ck\``);
    await sql.end();
    if (this.setting.cluster) {
      for (const master of await this.stage.cluster().masters()) await master.flushall();
      return;
    }
    for (const sink of this.setting.sinks) {
      const server = this.stage.server(sink);
      if (sink === 'redis') await server.client('cli', ['FLUSHALL']);
      else await this.#dropIndexes(server.get('ELASTICSEARCH_URL'));
    }
  }

  /** By their names: patterns are refused. */
  async #dropIndexes(url: string): Promise<void> {
    const names = Object.keys(TABLES).map((table) => `${this.database}-${table}`);
    const response = await fetch(`${url}/${names.join(',')}?ignore_unavailable=true`, { method: 'DELETE' });
    if (!response.ok) throw new Error(`the indexes could not be removed: ${await response.text()}`);
  }

  #eye(sink: SinkName): SinkEye {
    if (this.setting.cluster) return new RedisClusterEye(this.stage.cluster(), this.database);
    const server = this.stage.server(sink);
    return sink === 'redis'
      ? new RedisEye(server.get('REDIS_URL'), this.database)
      : new ElasticEye(server.get('ELASTICSEARCH_URL'), this.database);
  }

  async #openLog(): Promise<LogEye | null> {
    // half-made files must not be opened
    this.#logIsMade ||= this.readers.some(({ printed }) => printed.includes('"msg":"reader started"'));
    if (!this.#logIsMade) return null;
    if (this.setting.transport === 'log') return await EmbeddedLogEye.open(join(this.dataFolder, 'log'), this.database);
    return await this.#openKafka();
  }

  async #openKafka(): Promise<KafkaEye> {
    return await KafkaEye.open(this.stage.server('kafka').get('KAFKA_BROKERS').split(','), this.database);
  }

  /** How often its brokers compact is no setting of MySync's. */
  async #makeForgetfulTopic(): Promise<void> {
    const kafka = await this.#openKafka();
    await kafka.make(this.setting.partitions, FORGETFUL_TOPIC);
    await kafka.close();
  }

  #redis(): Readonly<Record<string, unknown>> {
    const { setting, stage } = this;
    if (!setting.cluster) return { url: `redis://127.0.0.1:${stage.proxy('redis').port}` };
    const hosts = stage.cluster().announced.map(({ host, port }) => `${host}:${port}`);
    // longer than a seed: what was moved to a master that is lost has its changes applied again, whenever they were made
    return { hosts, cluster: true, failoverReplayMs: 600_000 };
  }

  #checkpoint(): unknown {
    const { setting, stage, dataFolder, address, database } = this;
    if (setting.checkpoint !== 'mysql') return { kind: setting.checkpoint, path: join(dataFolder, 'checkpoints') };
    const { user, password } = address;
    const host = `127.0.0.1:${stage.proxy(setting.source).port}`;
    return { kind: 'mysql', mysql: { host, user, password, database: `${database}_ck` } };
  }

  /** The checkpoint's text; null: there is none yet. */
  async #readCheckpoint(log: LogEye): Promise<string | null> {
    const { setting, database } = this;
    if (setting.checkpoint === 'topic') {
      const bytes = await log.newest(`${database}-checkpoint`, 'checkpoint');
      return bytes === null ? null : inflateRawSync(bytes).toString('utf8');
    }
    if (setting.checkpoint === 'file') {
      return await readFile(join(this.dataFolder, 'checkpoints', `${database}.json`), 'utf8');
    }
    const sql = await textConnection(this.address);
    try {
      const [rows] = await sql.query(`SELECT body FROM \`${database}_ck\`.mysync_checkpoint`);
      return (rows as { body: string | null }[])[0]?.body ?? null;
    } finally {
      sql.destroy();
    }
  }

  #clockEnv(): Record<string, string> {
    return {
      LD_PRELOAD: this.#clockLibrary,
      FAKETIME_TIMESTAMP_FILE: join(this.folder, 'clock'),
      FAKETIME_CACHE_DURATION: '1',
      // the monotonic clock is what timers use: no machine sets that one
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  #config(): unknown {
    const { setting, stage, database, dataFolder } = this;
    const { user, password } = this.address;
    const { partitions, transport } = setting;
    const match = (table: string): string[] => [`${database}.${table}`];
    const rules = Object.entries(TABLES).map(([table, columns]) => ({
      match: match(table),
      target: columns.map((column) => `{column:${column}}`).join(','),
    }));
    const sinks: Record<string, unknown> = {};
    for (const sink of setting.sinks) {
      const common = { ...setting.sink, group: `g${this.#groups}-${sink}` };
      sinks[sink] =
        sink === 'redis'
          ? {
              kind: 'redis',
              ...this.#redis(),
              tables: rules.map((rule) => ({ match: rule.match, key: `{database}:{table}:${rule.target}` })),
              ...common,
            }
          : {
              kind: 'elasticsearch',
              nodes: [`http://127.0.0.1:${stage.proxy(sink).port}`],
              // the default of a minute is longer than a seed
              requestTimeoutMs: 5000,
              tables: rules.map((rule) => ({ match: rule.match, index: '{database}-{table}', id: rule.target })),
              ...common,
            };
    }
    return {
      sources: {
        [database]: {
          hosts: [`127.0.0.1:${stage.proxy(setting.source).port}`],
          user,
          password,
          tables: [`${database}.*`],
          spoolFolder: dataFolder,
          ...setting.sourceOptions,
        },
      },
      transport: {
        kind: transport,
        partitions,
        ...(transport === 'log'
          ? {
              log: {
                path: join(dataFolder, 'log'),
                ...(setting.compactionMs === null ? {} : { compactionIntervalMs: setting.compactionMs }),
              },
            }
          : { kafka: { brokers: BROKERS.map((name) => `127.0.0.1:${stage.proxy(name).port}`) } }),
        ...setting.transportOptions,
      },
      reader: setting.reader,
      checkpoint: this.#checkpoint(),
      sinks,
      telemetry: { port: 0, logLevel: 'info' },
    };
  }
}
