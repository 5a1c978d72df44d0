import { systemClock } from '@mysync/core';
import { sinkErrors } from '@mysync/sink';
import { type Argument, RedisConnection } from './connection.ts';
import { redisFailure, replyCode } from './failure.ts';
import { MasterWatch } from './master-watch.ts';
import type { RedisAddress, RedisSettings } from './options.ts';
import type { Script } from './script.ts';
import { addressName, type ClusterMaster, parseAddress, SlotMap } from './slot-map.ts';

export interface SlotRequest {
  readonly slot: number;
  readonly command: readonly Argument[];
  /** It touches further keys of the slot: it waits until the slot has moved, since the other node does not say that it lacks them. */
  readonly stays?: boolean;
}

interface Pending {
  readonly at: number;
  /** Where a redirection points; else the slot's owner. */
  readonly address: RedisAddress | null;
  readonly asking: boolean;
  /** Where it was last sent to and what was said there, when it was not executed. */
  readonly why: string;
  /** It was answered by an error without a code, while nothing was known to move. */
  readonly refused?: true;
}

/** A slot on its way: some keys are here, some there. It passes. */
const MOVING_PAUSE_MS = 25;
/** Redirections that are followed at once. */
const QUICK_ROUNDS = 5;

/**
 * Brings commands of one slot each to the masters of a cluster.
 *
 * 1. Each round sends what is pending, pipelined per master, and waits for every answer: nothing of a call is under way when it
 *    ends, and commands for one key (there is at most one in a call) never overtake each other.
 * 2. Redirections are followed command by command: MOVED makes the slot map be read again, ASK asks once elsewhere, TRYAGAIN waits.
 *    Everything that a command can be told without having been executed is retried here until `commandTimeoutMs`.
 *    An error without a code (ERR) may be that of a script whose further keys are on their way, in one of several wordings: it is one when the
 *    slot is being moved by that node, or when it does not come a second time.
 * 3. A connection that breaks fails the call, after the other masters have answered: what was executed is unknown, so the
 *    caller sends its whole batch again.
 * 4. Another owner of a slot, or a connection that was replaced, is a doubt.
 * 5. A master that does not answer is waited for no longer than until others know of another one; where the masters are is asked of those that do answer.
 */
export class ClusterRouter {
  readonly #settings: RedisSettings;
  readonly #scripts: readonly Script[];
  readonly #onDoubt: (reason: string) => void;
  readonly #connections = new Map<string, RedisConnection>();
  readonly #opening = new Map<string, Promise<RedisConnection>>();
  readonly #known = new Set<string>();
  readonly #watch = new MasterWatch({
    look: (silent) => this.#mastersElsewhere(silent),
    leave: (name) => this.#leave(name),
  });
  #map: SlotMap | null = null;
  #reading: Promise<SlotMap> | null = null;
  #stale = false;
  #closed = false;

  constructor(settings: RedisSettings, scripts: readonly Script[], onDoubt: (reason: string) => void) {
    this.#settings = settings;
    this.#scripts = scripts;
    this.#onDoubt = onDoubt;
  }

  /** Replies in order; an error that Redis replied (other than a redirection) takes the place of its reply. */
  async run(requests: readonly SlotRequest[], signal?: AbortSignal): Promise<unknown[]> {
    const replies = new Array<unknown>(requests.length);
    const end = systemClock.monotonic() + this.#settings.commandTimeoutMs;
    let pending: readonly Pending[] = requests.map((_, at) => ({ at, address: null, asking: false, why: '' }));
    for (let round = 0; pending.length > 0; round++) {
      if (round > 0 && systemClock.monotonic() > end) {
        throw sinkErrors.SINK_UNREACHABLE({
          message: `the cluster did not take ${pending.length} commands in time; the last answer was ${pending[0]?.why}`,
        });
      }
      const map = await this.slotMap();
      const groups = group(pending, requests, map);
      const rounds = [...groups].map(([name, each]) =>
        this.#watch.during(name, this.#send(each, requests, replies, signal)),
      );
      const settled = await Promise.allSettled(rounds);
      const again: Pending[] = [];
      let pause = false;
      for (const result of settled) {
        if (result.status === 'rejected') {
          this.#stale = true;
          throw result.reason;
        }
        again.push(...result.value.again);
        pause ||= result.value.pause;
      }
      // nodes that send a command to and fro have not agreed yet
      if ((pause || round >= QUICK_ROUNDS) && again.length > 0) await systemClock.sleep(MOVING_PAUSE_MS, signal);
      pending = again;
    }
    return replies;
  }

  async #send(
    group: Group,
    requests: readonly SlotRequest[],
    replies: unknown[],
    signal: AbortSignal | undefined,
  ): Promise<{ again: Pending[]; pause: boolean }> {
    const connection = await this.connection(group.address);
    const commands: (readonly Argument[])[] = [];
    for (const { at, asking } of group.pending) {
      if (asking) commands.push(['ASKING']);
      commands.push(requests[at]?.command ?? []);
    }
    const answers = await connection.callAll(commands, signal);
    const again: Pending[] = [];
    let pause = false;
    let place = 0;
    let moving: Promise<ReadonlySet<number>> | null = null;
    for (const { at, asking, refused } of group.pending) {
      if (asking) place++;
      const answer = answers[place++];
      let next = answer instanceof Error ? this.#redirect(at, requests[at], answer, connection) : null;
      if (answer instanceof Error && replyCode(answer) === 'ERR') {
        moving ??= movingSlots(connection, signal);
        const isMoving = (await moving).has(requests[at]?.slot ?? 0);
        if (isMoving || refused === undefined) next = this.#again(at, answer, connection, isMoving);
      }
      if (next === null) replies[at] = answer;
      else {
        again.push(next);
        pause ||= next.address === null;
      }
    }
    return { again, pause };
  }

  /** What to do with a command that was not executed; null when the error is the answer. */
  #redirect(at: number, request: SlotRequest | undefined, error: Error, connection: RedisConnection): Pending | null {
    const code = replyCode(error);
    const target = error.message.split(' ')[2] ?? '';
    const why = `'${error.message}' of ${connection.name}`;
    if (code === 'MOVED') this.#stale = true;
    if (code === 'ASK' && request?.stays === true) return { at, address: null, asking: false, why };
    if (code === 'MOVED' || code === 'ASK') {
      return { at, address: parseAddress(target, connection.address), asking: code === 'ASK', why };
    }
    if (code === 'NOSCRIPT') {
      // The next connection loads the scripts again.
      connection.destroy('the script cache was emptied');
      return { at, address: null, asking: false, why };
    }
    if (code === 'CLUSTERDOWN' || code === 'MASTERDOWN' || code === 'LOADING') this.#stale = true;
    const moving = code === 'TRYAGAIN' || code === 'CLUSTERDOWN';
    return moving ? { at, address: null, asking: false, why } : null;
  }

  #again(at: number, error: Error, connection: RedisConnection, isMoving: boolean): Pending {
    this.#stale = true;
    const why = `'${error.message}' of ${connection.name}`;
    return { at, address: null, asking: false, why, ...(isMoving ? {} : { refused: true }) };
  }

  /** What every master takes that we are connected to. */
  get maxArgumentBytes(): number {
    let least = Number.POSITIVE_INFINITY;
    for (const { maxArgumentBytes } of this.#connections.values()) least = Math.min(least, maxArgumentBytes);
    return least;
  }

  async slotMap(): Promise<SlotMap> {
    if (this.#map !== null && !this.#stale) return this.#map;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    return await this.#reading;
  }

  async masters(): Promise<readonly ClusterMaster[]> {
    return (await this.slotMap()).masters;
  }

  async #read(): Promise<SlotMap> {
    const candidates = new Map<string, RedisAddress>();
    for (const master of this.#map?.masters ?? []) candidates.set(master.name, master.address);
    for (const address of this.#settings.hosts) candidates.set(addressName(address), address);
    // a server that answered a moment ago goes before one that is to be connected to; one that is silent comes last
    const { silent } = this.#watch;
    const rank = (name: string): number => (silent.has(name) ? 2 : this.#connections.get(name)?.isOpen ? 0 : 1);
    const order = [...candidates].sort(([a], [b]) => rank(a) - rank(b));
    let failure: unknown = sinkErrors.SINK_UNREACHABLE({ message: 'no Redis server is named' });
    for (const [, address] of order) {
      try {
        const connection = await this.connection(address);
        const map = SlotMap.parse(await connection.call(['CLUSTER', 'SLOTS']), address);
        const changed = this.#map !== null && !map.equals(this.#map);
        this.#map = map;
        this.#stale = false;
        this.#drop(map);
        if (changed) this.#onDoubt('the slot map of the cluster changed');
        return map;
      } catch (error) {
        failure = error;
      }
    }
    throw redisFailure(failure, 'the cluster');
  }

  /** All are asked: what took the answers of one may have taken those of others, whose time should not begin when its time is over. */
  async #mastersElsewhere(silent: ReadonlySet<string>): Promise<ReadonlySet<string> | null> {
    const asked = [...this.#connections].filter(([name, { isOpen }]) => isOpen && !silent.has(name));
    if (asked.length === 0) return null;
    return await Promise.any(
      asked.map(async ([name, connection]) => {
        const slots = await this.#watch.during(name, connection.call(['CLUSTER', 'SLOTS']));
        return new Set(SlotMap.parse(slots, connection.address).masters.map((master) => master.name));
      }),
    );
  }

  /** One that a slot is only being moved to may be no master for others yet. */
  #leave(name: string): void {
    if (this.#map?.masters.some((master) => master.name === name) !== true) return;
    this.#connections.get(name)?.destroy('no answer, and its slots have another master');
  }

  /** Ends connections to servers that are no master any more. */
  #drop(map: SlotMap): void {
    const kept = new Set([...map.masters.map((master) => master.name), ...this.#settings.hosts.map(addressName)]);
    for (const [name, connection] of this.#connections) {
      if (kept.has(name)) continue;
      connection.destroy('no master any more');
      this.#connections.delete(name);
      this.#known.delete(name);
    }
  }

  async connection(address: RedisAddress): Promise<RedisConnection> {
    if (this.#closed) throw sinkErrors.SINK_UNREACHABLE({ message: 'the sink was closed' });
    const name = addressName(address);
    const open = this.#connections.get(name);
    if (open?.isOpen) return open;
    let opening = this.#opening.get(name);
    if (opening === undefined) {
      opening = this.#connect(address, name).finally(() => this.#opening.delete(name));
      this.#opening.set(name, opening);
    }
    return await opening;
  }

  async #connect(address: RedisAddress, name: string): Promise<RedisConnection> {
    const connection = await RedisConnection.open(address, this.#settings);
    try {
      for (const script of this.#scripts) await connection.call(['SCRIPT', 'LOAD', script.text]);
    } catch (error) {
      connection.destroy('not usable');
      throw error;
    }
    this.#connections.get(name)?.destroy('replaced');
    this.#connections.set(name, connection);
    if (this.#known.has(name)) this.#onDoubt(`reconnected to Redis at ${name}`);
    this.#known.add(name);
    return connection;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#opening.values());
    for (const connection of this.#connections.values()) {
      connection.destroy('closed');
      await connection.closed;
    }
    this.#connections.clear();
  }
}

interface Group {
  readonly address: RedisAddress;
  readonly pending: Pending[];
}

function group(pending: readonly Pending[], requests: readonly SlotRequest[], map: SlotMap): Map<string, Group> {
  const groups = new Map<string, Group>();
  for (const each of pending) {
    const slot = requests[each.at]?.slot ?? 0;
    const address = each.address ?? map.owner(slot)?.address;
    if (address === undefined) {
      throw sinkErrors.SINK_UNREACHABLE({ message: `no master of the cluster owns slot ${slot}` });
    }
    const name = addressName(address);
    const found = groups.get(name);
    if (found === undefined) groups.set(name, { address, pending: [each] });
    else found.pending.push(each);
  }
  return groups;
}

/** Slots that a node hands over or takes: `[93->-ID]` and `[93-<-ID]` on its own line. */
async function movingSlots(connection: RedisConnection, signal: AbortSignal | undefined): Promise<ReadonlySet<number>> {
  const nodes = String(await connection.call(['CLUSTER', 'NODES'], signal));
  const own = nodes.split('\n').find((line) => line.includes('myself')) ?? '';
  return new Set([...own.matchAll(/\[(\d+)-[<>]-/g)].map(([, slot]) => Number(slot)));
}
