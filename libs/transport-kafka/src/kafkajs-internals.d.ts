/**
 * The parts of kafkajs 2.2.4 below its public face that this room stands on (docs/adr/0040). kafkajs ships no types for
 * them; only what is used is declared. The version is pinned exactly in package.json.
 */

declare module 'kafkajs/src/network/connection.js' {
  import type { Socket } from 'node:net';
  import type { ISocketFactory } from 'kafkajs';

  interface PushedRequest {
    readonly entry: {
      readonly apiKey: number;
      readonly apiName: string;
      readonly apiVersion: number;
      readonly correlationId: number;
      readonly resolve: (answer: { readonly payload: Buffer }) => void;
      readonly reject: (error: Error) => void;
    };
    readonly expectResponse: boolean;
    readonly requestTimeout: number;
    readonly sendRequest: () => void;
  }

  class Connection {
    constructor(options: {
      host: string;
      port: number;
      logger: object;
      socketFactory: ISocketFactory;
      clientId: string;
      requestTimeout: number;
      connectionTimeout: number;
      ssl: object | null;
      sasl: object | null;
    });
    readonly socket: Socket | undefined;
    readonly requestQueue: { push(request: PushedRequest): void; rejectAll(error: Error): void; destroy(): void };
    connect(): Promise<boolean>;
    disconnect(): Promise<boolean>;
    authenticate(): Promise<void>;
    isConnected(): boolean;
    isAuthenticated(): boolean;
    nextCorrelationId(): number;
    setVersions(versions: object): void;
    setSupportAuthenticationProtocol(supported: boolean): void;
    getSupportAuthenticationProtocol(): boolean | null;
    send(request: object): Promise<unknown>;
  }
  export default Connection;
}

declare module 'kafkajs/src/broker/index.js' {
  export interface GroupMemberRow {
    readonly memberId: string;
    readonly memberMetadata: Buffer;
  }

  class Broker {
    constructor(options: { connectionPool: object; logger: object; nodeId: number; authenticationTimeout: number });
    versions: Readonly<Record<number, { minVersion: number; maxVersion: number }>> | null;
    connect(): Promise<void>;
    findGroupCoordinator(request: { groupId: string; coordinatorType: number }): Promise<{
      coordinator: { nodeId: number; host: string; port: number };
    }>;
    listOffsets(request: {
      replicaId: number;
      isolationLevel: number;
      topics: { topic: string; partitions: { partition: number; timestamp: string }[] }[];
    }): Promise<{ responses: { partitions: { partition: number; offset: string }[] }[] }>;
    createTopics(request: {
      topics: {
        topic: string;
        numPartitions: number;
        replicationFactor: number;
        configEntries: { name: string; value: string }[];
      }[];
      validateOnly: boolean;
      timeout: number;
    }): Promise<unknown>;
    describeConfigs(request: { resources: { type: number; name: string }[] }): Promise<{
      resources: { configEntries: { configName: string; configValue: string | null }[] }[];
    }>;
    joinGroup(request: {
      groupId: string;
      sessionTimeout: number;
      rebalanceTimeout: number;
      memberId: string;
      protocolType: string;
      groupProtocols: { name: string; metadata: Buffer }[];
    }): Promise<{ generationId: number; leaderId: string; memberId: string; members: GroupMemberRow[] }>;
    syncGroup(request: {
      groupId: string;
      generationId: number;
      memberId: string;
      groupAssignment: { memberId: string; memberAssignment: Buffer }[];
    }): Promise<{ memberAssignment: Buffer }>;
    heartbeat(request: { groupId: string; groupGenerationId: number; memberId: string }): Promise<unknown>;
    leaveGroup(request: { groupId: string; memberId: string }): Promise<unknown>;
    offsetCommit(request: {
      groupId: string;
      groupGenerationId: number;
      memberId: string;
      retentionTime: string;
      topics: { topic: string; partitions: { partition: number; offset: string }[] }[];
    }): Promise<unknown>;
    offsetFetch(request: {
      groupId: string;
      topics: { topic: string; partitions: { partition: number }[] }[];
    }): Promise<{
      responses: { partitions: { partition: number; offset: string }[] }[];
    }>;
  }
  export default Broker;
}

declare module 'kafkajs/src/loggers/index.js' {
  const loggers: {
    createLogger(options: {
      level: number;
      logCreator: () => (entry: { label: string; log: { message: string } }) => void;
    }): object;
    LEVELS: { readonly WARN: number; readonly ERROR: number };
  };
  export default loggers;
}
