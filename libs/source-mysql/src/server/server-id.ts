/** Our id as a replica: no two that are connected may have the same one. */
import { randomBytes } from 'node:crypto';
import { sourceErrors } from '../errors.ts';
import { connectedReplicas, ownServerId } from './log-state.ts';
import { formatHost, type ServerSession } from './session.ts';

/**
 * The configured id, unless somebody else has it; else a random one of the highest quarter that nobody has. A replica of our own
 * name is a former connection of this source that the server has not missed yet: it is the one that has to go.
 */
export async function freeServerId(
  session: ServerSession,
  configured: number | undefined,
  name: string,
): Promise<number> {
  const replicas = (await connectedReplicas(session)) ?? [];
  const others = configured === undefined ? replicas : replicas.filter((replica) => replica.host !== name);
  const taken = new Set([await ownServerId(session), ...others.map((replica) => replica.serverId)]);
  if (configured !== undefined) {
    if (taken.has(configured)) throw serverIdInUse(session, configured);
    return configured;
  }
  for (;;) {
    const id = 0xc000_0000 + (randomBytes(4).readUInt32LE(0) % 0x3fff_ffff);
    if (!taken.has(id)) return id;
  }
}

function serverIdInUse(session: ServerSession, id: number): Error {
  return sourceErrors.SOURCE_SERVER_ID_IN_USE({
    message: `another replica of ${formatHost(session.facts.host)} has the server id ${id}`,
    where: { host: formatHost(session.facts.host), serverId: id },
  });
}
