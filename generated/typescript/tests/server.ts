// A server that does what a test wants: a plain ROUTER that speaks the protocol by hand. It is written against the
// document, not with what it tests, but for the messages of the wire's schema.

import { setTimeout as sleep } from "node:timers/promises";

import { Router } from "zeromq";

import { PATIENCE, until } from "./kit.js";
import { Hello, NodeState, ObjectRole, RecordKind, Reject, Topology, Update } from "../src/zlink/wire.js";
import type { HelloInput, RejectReason } from "../src/zlink/wire.js";

/** Asks whether a link stands at the client, too: an attempt may fail there after it was admitted. */
const STANDS = 1n;

/** A request or one-way message as it came. */
export interface Came {
  readonly from: Client;
  readonly kind: number;
  /** The number, or the names. */
  readonly operation: number | readonly [string, string];
  readonly correlation: bigint;
  readonly timeoutMs: number;
  readonly metadata: Buffer;
  readonly payload: Buffer;
}

/** A link with a client, from the server's side. */
export class Client {
  readonly hello: Hello;
  readonly #server: Server;
  readonly #identity: Buffer;
  /** Identities of probes that it sent, and of acknowledgements. */
  readonly probes: bigint[] = [];
  readonly acks: bigint[] = [];
  flow = 0n;

  constructor(server: Server, identity: Buffer, hello: Hello) {
    this.#server = server;
    this.#identity = identity;
    this.hello = hello;
  }

  say(...records: Uint8Array[]): Promise<void> {
    return this.#server.say(this.#identity, ...records);
  }

  reply(correlation: bigint, payload: Uint8Array, flags = 0, blocks: Uint8Array = new Uint8Array()): Promise<void> {
    const head = Buffer.alloc(16);
    head.set([1, RecordKind.Reply, flags & 255, flags >> 8]);
    head.writeBigUInt64LE(correlation, 8);
    return this.say(Buffer.concat([head, blocks, payload]));
  }

  fail(correlation: bigint, error: number, executed: number, text: string | Uint8Array): Promise<void> {
    const head = Buffer.alloc(16);
    head.set([1, RecordKind.Reply, 0, 0, 1, error, executed, 0]);
    head.writeBigUInt64LE(correlation, 8);
    return this.say(Buffer.concat([head, Buffer.from(text)]));
  }

  async pause(paused: boolean, version = (this.flow += 1n)): Promise<void> {
    const record = Buffer.alloc(16);
    record.set([1, RecordKind.Flow, 0, 0, paused ? 1 : 0]);
    record.writeBigUInt64LE(version, 8);
    await this.say(record);
  }

  /** A frame as it is. */
  garble(frame: Uint8Array): Promise<void> {
    return this.#server.raw(this.#identity, frame);
  }

  probe(kind: number, id: bigint): Promise<void> {
    const record = Buffer.alloc(16);
    record.set([1, kind]);
    record.writeBigUInt64LE(id, 8);
    return this.say(record);
  }

  update(revision: bigint, change: { state?: number; weight?: number; channel?: string }): Promise<void> {
    const { state = NodeState.Serving, weight = 100, channel = "orders" } = change;
    const body = Update.encode({ revision, state, channels: [{ name: channel, weight }] });
    return this.say(service(RecordKind.Update, body));
  }

  /** Waits until the client has read all that was said before. */
  async settled(): Promise<void> {
    const id = BigInt(1000 + this.acks.length);
    await this.probe(RecordKind.Probe, id);
    await until("the answer to a probe", () => this.acks.includes(id));
  }
}

/** A service record with its message. */
export function service(kind: number, body: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([1, kind, 0, 0]), body]);
}

/** What a test may want of a server. */
export interface ServerOptions {
  readonly endpoint?: string;
  readonly rid?: string;
  /** Other fields of its admit. */
  readonly admit?: Partial<HelloInput>;
  /** Answers the hello in place of an admit. */
  readonly answer?: (hello: Hello) => readonly Uint8Array[];
  /** Whether it answers probes. */
  readonly acks?: boolean;
  /** Whether it reads at all. */
  readonly reads?: boolean;
}

export class Server {
  readonly endpoint: string;
  readonly #socket: Router;
  readonly #options: ServerOptions;
  readonly #links = new Map<string, Client>();
  /** Links as they came to stand. */
  readonly clients: Client[] = [];
  readonly came: Came[] = [];
  readonly rejects: { readonly reason: RejectReason; readonly text: string }[] = [];
  /** How many frames had more than one record. */
  joined = 0;
  /** Bytes of all frames. */
  bytes = 0;
  /** Is asked to answer a request. */
  onRequest: (came: Came) => void = () => undefined;
  /** Whether probes are answered. */
  acks: boolean;
  #sending = Promise.resolve();
  readonly #reading: Promise<void>;

  private constructor(socket: Router, endpoint: string, options: ServerOptions) {
    this.#socket = socket;
    this.endpoint = endpoint;
    this.#options = options;
    this.acks = options.acks ?? true;
    this.#reading = options.reads === false ? Promise.resolve() : this.#read();
  }

  static async bind(options: ServerOptions = {}): Promise<Server> {
    // A ROUTER drops what exceeds its mark.
    const socket = new Router({ linger: PATIENCE, mandatory: false, sendHighWaterMark: 0, receiveHighWaterMark: 4 });
    const { endpoint = "tcp://127.0.0.1:*" } = options;
    for (const deadline = performance.now() + PATIENCE; ; ) {
      try {
        await socket.bind(endpoint);
        return new Server(socket, socket.lastEndpoint ?? "", options);
      } catch (error) {
        // The port of a server before is free once the library's thread has closed it, and nobody else took it meanwhile.
        if (options.endpoint === undefined || performance.now() > deadline) throw error;
        await sleep(10);
      }
    }
  }

  async close(): Promise<void> {
    this.#socket.close();
    await this.#reading;
  }

  /** The link of that number, from 1, which stands. */
  async client(count = 1): Promise<Client> {
    await until("a link", () => this.clients.length >= count);
    const client = this.clients[count - 1];
    if (client === undefined) throw new Error("no link");
    return client;
  }

  /** The request or message of that number, from 0. */
  async next(at = 0): Promise<Came> {
    await until("a call", () => this.came.length > at);
    const came = this.came[at];
    if (came === undefined) throw new Error("no call");
    return came;
  }

  say(identity: Buffer, ...records: Uint8Array[]): Promise<void> {
    const entries = records.map((record) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(record.length);
      return Buffer.concat([length, record]);
    });
    return this.raw(identity, Buffer.concat(entries));
  }

  /** Sends a frame as it is. */
  raw(identity: Buffer, frame: Uint8Array): Promise<void> {
    this.#sending = this.#sending.then(() => this.#socket.send([identity, frame])).catch(() => undefined);
    return this.#sending;
  }

  async #read(): Promise<void> {
    for await (const [identity, ...frames] of this.#socket) {
      if (identity === undefined) continue;
      for (const frame of frames) {
        this.bytes += frame.length;
        let records = 0;
        for (let at = 0; at < frame.length; records++) {
          const length = frame.readUInt32LE(at);
          if (length === 0 || at + 4 + length > frame.length) throw new Error("a frame of the client does not add up");
          this.#record(identity, frame.subarray(at + 4, at + 4 + length));
          at += 4 + length;
        }
        if (records > 1) this.joined += 1;
      }
    }
  }

  #record(identity: Buffer, record: Buffer): void {
    const key = identity.toString("hex");
    const [major, kind = 0] = record;
    if (major !== 1) throw new Error("a record of another major");
    if (kind === RecordKind.Hello) {
      this.#greet(identity, Hello.decode(record.subarray(4)));
      return;
    }
    if (kind === RecordKind.Reject) {
      this.rejects.push(Reject.decode(record.subarray(4)));
      return;
    }
    const client = this.#links.get(key);
    if (client === undefined) throw new Error(`a record of kind ${kind} came before the hello`);
    switch (kind) {
      case RecordKind.Probe:
        client.probes.push(record.readBigUInt64LE(8));
        if (this.acks) void client.probe(RecordKind.ProbeAck, record.readBigUInt64LE(8));
        return;
      case RecordKind.ProbeAck:
        if (record.readBigUInt64LE(8) === STANDS) this.clients.push(client);
        else client.acks.push(record.readBigUInt64LE(8));
        return;
      case RecordKind.ChannelRequest:
      case RecordKind.ChannelSend:
        this.#call(client, kind, record);
        return;
      default:
        throw new Error(`a client sent a record of kind ${kind}`);
    }
  }

  #greet(identity: Buffer, hello: Hello): void {
    const { answer } = this.#options;
    const client = new Client(this, identity, hello);
    this.#links.set(identity.toString("hex"), client);
    if (answer !== undefined) {
      void client.say(...answer(hello));
      return;
    }
    void client.say(service(RecordKind.Admit, Hello.encode(this.admit(hello))));
    void client.probe(RecordKind.Probe, STANDS);
  }

  /** What it says of itself. */
  admit(hello: Hello): HelloInput {
    return {
      topology: Topology.ClientServer,
      scope: hello.scope,
      rid: Buffer.from(this.#options.rid ?? "server"),
      generation: 7n,
      revision: 1n,
      role: ObjectRole.None,
      channels: [{ name: hello.scope, weight: 100 }],
      endpoint: this.endpoint,
      maxMessage: 16n * 1024n * 1024n,
      state: NodeState.Serving,
      operations: [{ channel: hello.scope, packet: "contract.orders.ask" }],
      ...this.#options.admit,
    };
  }

  #call(from: Client, kind: number, record: Buffer): void {
    const request = kind === RecordKind.ChannelRequest;
    const flags = record.readUInt16LE(2);
    const number = record.readUInt32LE(4);
    let at = request ? 24 : 8;
    const short = () => {
      const length = record.readUInt8(at);
      at += 1 + length;
      return record.subarray(at - length, at).toString();
    };
    const operation = number === 0xffff_ffff ? ([short(), short()] as const) : number;
    let metadata = Buffer.alloc(0);
    if ((flags & 1) !== 0) {
      const length = record.readUInt16LE(at);
      metadata = Buffer.from(record.subarray(at + 2, at + 2 + length));
      at += 2 + length;
    }
    const came: Came = {
      from,
      kind,
      operation,
      correlation: request ? record.readBigUInt64LE(8) : 0n,
      timeoutMs: request ? record.readUInt32LE(16) : 0,
      metadata,
      payload: record.subarray(at),
    };
    this.came.push(came);
    if (request) this.onRequest(came);
  }
}
