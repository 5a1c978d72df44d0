import type { Finding } from '@mysync/core';
import { connectedReplicas, ownServerId } from '../server/log-state.ts';
import type { ServerSession } from '../server/session.ts';
import { finding } from './settings.ts';

/** Two replicas with one id throw each other out again and again. */
export async function checkServerId(
  session: ServerSession,
  configured: number | undefined,
  name: string,
): Promise<Finding[]> {
  if (configured === undefined) {
    return [finding('ok', 'SOURCE_SERVER_ID_IN_USE', 'the server id is chosen at each start, free of collision')];
  }
  if (configured === (await ownServerId(session))) {
    return [finding('error', 'SOURCE_SERVER_ID_IN_USE', `the server itself has the server id ${configured}`)];
  }
  const replicas = await connectedReplicas(session);
  if (replicas === undefined) {
    const message = `whether another replica has the server id ${configured} cannot be seen without a grant`;
    return [finding('warning', 'SOURCE_SERVER_ID_IN_USE', message)];
  }
  const other = replicas.find((replica) => replica.serverId === configured && replica.host !== name);
  if (other === undefined) return [finding('ok', 'SOURCE_SERVER_ID_IN_USE', `server id ${configured} is free`)];
  return [finding('error', 'SOURCE_SERVER_ID_IN_USE', `the replica '${other.host}' has the server id ${configured}`)];
}
