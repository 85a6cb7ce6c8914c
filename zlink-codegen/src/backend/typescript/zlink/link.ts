// One attempt to link with a server, over one socket: connect, greet, carry calls, end. The socket never connects again,
// so nothing that is given to it can reach a later server. It must not know other links.

import { setImmediate as turn } from "node:timers/promises";

import { Dealer } from "zeromq";
import type { EventType } from "zeromq";

import { Refusal, hello, judge, reject, rejected, update } from "./admission.js";
import type { Local, Server } from "./admission.js";
import type { Call } from "./call.js";
import type { Bytes } from "./codec.js";
import { ArgumentError, CallError } from "./errors.js";
import { Liveness } from "./liveness.js";
import { COALESCE_BYTES, Malformed, PREFIX, call as callHead, parse, probe, records } from "./record.js";
import { RecordKind } from "./wire.js";

/** How long connecting may take, and then the handshake. */
const HANDSHAKE_MS = 2_000;
/** How often a ready link looks at the clock. */
const TICK_MS = 1_000;
/**
 * What the peer may not have read yet of what the socket was given, in bytes: probes, which it answers in order, tell how
 * far it is. So calls wait here, where they can be withdrawn, and not in the socket.
 */
const WINDOW_BYTES = 1024 * 1024;
/** After this many bytes a probe asks how far the peer is. */
const ASK_BYTES = WINDOW_BYTES / 4;
/**
 * When the library would connect again, were the socket not closed at the first sign of an end. Where it is told not to, or
 * to hold messages back without a connection, it drops what it has received as soon as the connection ends: the last
 * replies of a server that shuts down in order.
 */
const NEVER_MS = 2 ** 31 - 1;
/** Messages that the library holds before it stops reading. */
const RECEIVE_MESSAGES = 16;

/** Frames of one message. */
const MESSAGE_FRAMES = 64;

/** How an attempt ended. */
export interface Ended {
  /** When it became ready, if it did. */
  readonly readyAt: number | undefined;
  /** Why it ended. */
  readonly reason: string;
  /** Who refused it, and why. */
  readonly refusal: Refusal | undefined;
}

/** What a link tells its owner. */
export interface LinkOwner {
  readonly local: Local;
  /** A number for a request, used once. */
  nextCorrelation(): number;
  /** It is admitted. The owner may throw a `Refusal`. */
  ready(link: Link): void;
  /** Its server changed its weight or state. */
  changed(link: Link): void;
  /** Nothing more can be sent over it; these calls were not. */
  lost(link: Link, unsent: readonly Call[]): void;
  /** Something happened that no call is told of. */
  report(link: Link, what: string): void;
}

/** One attempt. */
export class Link {
  readonly endpoint: string;
  readonly #owner: LinkOwner;
  readonly #socket: Dealer;
  #over: () => void = () => undefined;
  #phase: "connecting" | "greeting" | "awaiting" | "ready" | "lost" = "connecting";
  #server: Server | undefined;
  #liveness: Liveness | undefined;
  #readyAt: number | undefined;
  #refusal: Refusal | undefined;
  #reason = "";
  #limit: NodeJS.Timeout | undefined;
  #ticks: NodeJS.Timeout | undefined;
  #lastTick = 0;
  /** Calls that wait to be sent, in order. */
  readonly #queue = new Set<Call>();
  /** Requests that wait for their replies. */
  readonly #pending = new Map<number, Call>();
  /** Records of the link itself, which go first. Few: a greeting, and the newest answer to a probe. */
  #own: Bytes[] = [];
  #sending: Promise<void> | undefined;
  #paused = false;
  #flowVersion = 0n;
  /** Bytes given to the socket, and of these what the peer has read for certain. */
  #given = 0;
  #read = 0;
  /** What will have been read once the outstanding probe is answered. */
  #asked = 0;
  #received = 0;
  /** A reply has come since the last tick. */
  #replied = false;
  /** A record that no probe can pass was given to the socket, and nothing has come since. */
  #large = false;
  #quiet: (() => void)[] = [];

  constructor(endpoint: string, owner: LinkOwner) {
    this.endpoint = endpoint;
    this.#owner = owner;
    const { maxMessage } = owner.local;
    this.#socket = new Dealer({
      linger: 0,
      reconnectInterval: NEVER_MS,
      connectTimeout: HANDSHAKE_MS,
      handshakeInterval: HANDSHAKE_MS,
      maxMessageSize: Math.max(maxMessage, COALESCE_BYTES) + PREFIX,
      receiveHighWaterMark: RECEIVE_MESSAGES,
      // What stands in the socket is bounded in bytes, by the window.
      sendHighWaterMark: 0,
      // No routing id: a socket that still knows the attempt before would not listen to a second one of that name.
    });
  }

  /** The server, once admitted. */
  get server(): Server | undefined {
    return this.#server;
  }

  get isReady(): boolean {
    return this.#phase === "ready";
  }

  /** Whether a call that is pushed now goes at once, as far as can be told. */
  get isOpen(): boolean {
    return this.#phase === "ready" && !this.#paused && this.#given - this.#read < WINDOW_BYTES;
  }

  /** The server has said that it takes nothing now. */
  get isPaused(): boolean {
    return this.#paused;
  }

  /** Requests that wait for their replies here. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Makes the attempt and resolves when it is over. */
  async run(): Promise<Ended> {
    const over = new Promise<void>((resolve) => (this.#over = resolve));
    void this.#watch();
    void this.#receive();
    this.#within(HANDSHAKE_MS, "it did not answer in time");
    try {
      this.#socket.connect(this.endpoint);
    } catch (error) {
      this.close(`it cannot be connected to: ${error instanceof Error ? error.message : String(error)}`);
    }
    await over;
    await this.#sending;
    for (const call of this.#pending.values()) call.stopped("Unavailable", `the link was lost: ${this.#reason}`);
    return {
      readyAt: this.#readyAt,
      reason: this.#reason,
      refusal: this.#refusal,
    };
  }

  /** Ends it at once. */
  close(reason: string): void {
    this.#lose(reason);
    this.#shut();
  }

  /** Closes the socket, with which its monitor ends. */
  #shut(): void {
    this.#noLimit();
    this.#socket.close();
    this.#over();
  }

  /** Ends it at once, since this side stops. */
  end(reason: string): void {
    for (const call of [...this.#queue, ...this.#pending.values()]) call.stopped("ShuttingDown", reason);
    this.close(reason);
  }

  /** Takes a call that goes as soon as there is room. */
  push(call: Call): void {
    call.link = this;
    this.#queue.add(call);
    this.#pump();
  }

  /** Forgets a call that has ended. */
  forget(call: Call): void {
    this.#queue.delete(call);
    if (call.correlation !== undefined) this.#pending.delete(call.correlation);
    this.#settle();
  }

  /** Gives back the calls that were not sent yet. */
  takeUnsent(): readonly Call[] {
    const unsent = [...this.#queue];
    this.#queue.clear();
    return unsent;
  }

  /** Resolves when no call waits here, and the server has read all that was sent; or when the link is lost. */
  async quiet(): Promise<void> {
    const busy = () => this.#queue.size > 0 || this.#pending.size > 0 || this.#read < this.#given;
    while (this.#phase === "ready" && busy()) {
      if (this.#liveness?.waits === false && this.#read < this.#given) {
        this.#ask();
        this.#pump();
      }
      await new Promise<void>((resolve) => this.#quiet.push(resolve));
    }
  }

  #settle(): void {
    const waiting = this.#quiet;
    this.#quiet = [];
    for (const resolve of waiting) resolve();
  }

  /** Ends the attempt unless it gets on in time: what has arrived while the program was busy counts first. */
  #within(ms: number, reason: string): void {
    clearTimeout(this.#limit);
    const limit = setTimeout(() => {
      void turn().then(turn).then(() => {
        if (this.#limit === limit) this.close(reason);
      });
    }, ms);
    this.#limit = limit;
  }

  #noLimit(): void {
    clearTimeout(this.#limit);
    this.#limit = undefined;
  }

  async #watch(): Promise<void> {
    try {
      for await (const event of this.#socket.events) await this.#happened(event.type);
    } catch (error) {
      this.close(`the socket's monitor failed: ${String(error)}`);
    }
  }

  async #happened(event: EventType): Promise<void> {
    switch (event) {
      case "connect":
        if (this.#phase === "connecting") this.#within(HANDSHAKE_MS, "its handshake took too long");
        break;
      case "handshake":
        if (this.#phase !== "connecting") break;
        this.#phase = "greeting";
        this.#own.push(hello(this.#owner.local));
        this.#pump();
        break;
      case "disconnect":
      case "close":
      case "connect:retry":
      case "handshake:error:protocol":
      case "handshake:error:auth":
      case "handshake:error:other":
        await this.#drain(event === "disconnect" ? "the connection was lost" : "no connection was made");
        break;
      default:
        break;
    }
  }

  /** Ends it once everything that had arrived is read. */
  async #drain(reason: string): Promise<void> {
    if (this.#phase !== "lost") {
      this.#lose(reason);
      let before: number;
      do {
        before = this.#received;
        await turn();
        await turn();
      } while (this.#received !== before);
    }
    this.#shut();
  }

  /** Nothing more is sent. */
  #lose(reason: string): void {
    if (this.#phase === "lost") return;
    this.#phase = "lost";
    this.#reason = reason;
    this.#noLimit();
    clearInterval(this.#ticks);
    this.#owner.lost(this, this.takeUnsent());
    this.#settle();
  }

  #protocolError(what: string): void {
    this.#owner.report(this, what);
    this.close(what);
  }

  async #receive(): Promise<void> {
    try {
      for await (const frames of this.#socket) {
        this.#received += 1;
        this.#large = false;
        if (frames.length > MESSAGE_FRAMES) throw new Error(`a message has ${frames.length} frames`);
        for (const frame of frames) this.#frame(frame);
      }
    } catch (error) {
      this.close(`the socket failed: ${String(error)}`);
    }
  }

  #frame(frame: Bytes): void {
    // An admit may be longer than what is agreed with it.
    const { maxMessage } = this.#owner.local;
    const most = this.#server === undefined ? Math.max(maxMessage, COALESCE_BYTES) : maxMessage;
    try {
      for (const record of records(frame, most)) this.#record(record);
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      this.#protocolError(error.message);
    }
  }

  #record(record: Bytes): void {
    let incoming;
    try {
      incoming = parse(record);
    } catch (error) {
      const call = error instanceof Malformed ? this.#take(error.correlation) : undefined;
      if (call === undefined) throw error;
      call.failed(new CallError("ProtocolError", "Unknown", error instanceof Error ? error.message : String(error)));
      return;
    }
    // What arrived before the end still ends calls; all else is of no use any more.
    if (this.#phase === "lost" && incoming.is !== "reply" && incoming.is !== "failure") return;
    switch (incoming.is) {
      case "flow":
        this.#flow(incoming.version, incoming.paused);
        return;
      case "reply":
        this.#ends(incoming.correlation, (call) => call.replied(incoming.payload));
        return;
      case "failure":
        this.#ends(incoming.correlation, (call) =>
          call.failed(new CallError(incoming.kind, incoming.execution, incoming.text)),
        );
        return;
      default:
    }
    if (this.#phase === "awaiting" && incoming.is === "service") {
      this.#answered(incoming.kind, incoming.body);
    } else if (this.#phase === "ready") {
      this.#service(incoming);
    } else {
      throw new Malformed("a record came out of turn in the handshake");
    }
  }

  #ends(correlation: number, end: (call: Call) => void): void {
    this.#replied = true;
    const call = this.#take(correlation);
    if (call === undefined) this.#owner.report(this, "a reply came to no request that waits");
    else end(call);
  }

  #take(correlation: number | undefined): Call | undefined {
    return correlation === undefined ? undefined : this.#pending.get(correlation);
  }

  #flow(version: bigint, paused: boolean): void {
    if (version <= this.#flowVersion) return;
    this.#flowVersion = version;
    this.#paused = paused;
    // From here the limit runs in full again.
    this.#liveness?.tick(performance.now(), true);
    this.#pump();
  }

  /** The server's answer to the hello. */
  #answered(kind: RecordKind, body: Bytes): void {
    if (kind === RecordKind.Admit) {
      try {
        this.#server = judge(this.#owner.local, body);
        this.#phase = "ready";
        this.#owner.ready(this);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        this.#refuse(error);
        return;
      }
      this.#noLimit();
      this.#readyAt = performance.now();
      this.#lastTick = this.#readyAt;
      this.#liveness = new Liveness(this.#readyAt);
      this.#ticks = setInterval(() => this.#tick(), TICK_MS);
      this.#pump();
    } else if (kind === RecordKind.Reject) {
      this.#refusal = rejected(body);
      if (this.#refusal === undefined) throw new Malformed("a link was rejected for an unknown reason");
      this.close(`the server refused: ${this.#refusal.toText()}`);
    } else {
      throw new Malformed("a record came out of turn in the handshake");
    }
  }

  /** Tells the server why, and leaves it the time of a handshake to close. */
  #refuse(refusal: Refusal): void {
    this.#refusal = refusal;
    this.#lose(`refused: ${refusal.toText()}`);
    this.#limit = setTimeout(() => this.#shut(), HANDSHAKE_MS);
    this.#own = [reject(refusal)];
    void this.#flushOwn();
  }

  /** A record of the link itself, on a ready link. */
  #service(incoming: Exclude<ReturnType<typeof parse>, { is: "reply" | "failure" | "flow" }>): void {
    const server = this.#server;
    if (server === undefined) return;
    switch (incoming.is) {
      case "probe":
        this.#echo(incoming.id);
        return;
      case "probeAck":
        if (this.#liveness?.answered(performance.now(), incoming.id) === true) {
          this.#read = this.#asked;
          this.#settle();
          this.#pump();
        }
        return;
      case "service":
    }
    if (incoming.kind === RecordKind.Update) {
      try {
        if (update(server, this.#owner.local.channel, incoming.body)) this.#owner.changed(this);
      } catch (error) {
        throw new Malformed(error instanceof Error ? error.message : String(error));
      }
    } else {
      throw new Malformed("a service record came that has no place on a ready link");
    }
  }

  /** Answers a probe, the newest in place of an older one; but a peer that reads nothing gets no more answers. */
  #echo(id: bigint): void {
    if (this.#given - this.#read > 2 * WINDOW_BYTES) return;
    const answer = probe(RecordKind.ProbeAck, id);
    this.#own = this.#own.filter((record) => record[1] !== RecordKind.ProbeAck);
    this.#own.push(answer);
    this.#pump();
  }

  /** Sends the probe that is due, or the one that waits for its answer again. */
  #ask(): void {
    const liveness = this.#liveness;
    if (liveness === undefined) return;
    const { waits } = liveness;
    this.#own = this.#own.filter((record) => record[1] !== RecordKind.Probe);
    this.#own.push(probe(RecordKind.Probe, liveness.probe(performance.now())));
    // Its answer tells that what was given before is read; it itself counts as well.
    if (!waits) this.#asked = -1;
  }

  #tick(): void {
    const [first] = this.#queue;
    const large = this.#large || (first !== undefined && isLarge(first.parts.payload));
    const now = performance.now();
    // A tick that comes late says that this program stood still: answers may be there that it has not read.
    const late = now - this.#lastTick > 2 * TICK_MS;
    this.#lastTick = now;
    if (this.#replied) this.#liveness?.replied(now);
    this.#replied = false;
    const action = this.#liveness?.tick(now, this.#paused || large || late);
    if (action === "expired") {
      this.close("no probe was answered for 15 s");
    } else if (action === "probe") {
      this.#ask();
      this.#pump();
    }
  }

  /** Sends what may be sent. One loop at a time, since the library takes one message at a time. */
  #pump(): void {
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
      if (this.#hasWork()) this.#pump();
    });
  }

  #hasWork(): boolean {
    if (this.#phase !== "ready" && this.#phase !== "greeting") return false;
    if (this.#own.length > 0) return true;
    const [first] = this.#queue;
    if (first === undefined || this.#paused || this.#phase !== "ready") return false;
    return this.#hasRoom(mostBytes(first)) || this.#liveness?.waits === false;
  }

  /** A record larger than the window goes when the peer has read all before it. */
  #hasRoom(bytes: number): boolean {
    const unread = this.#given - this.#read;
    return this.#phase === "ready" && !this.#paused && (unread === 0 || unread + bytes <= WINDOW_BYTES);
  }

  async #flushOwn(): Promise<void> {
    const own = this.#own;
    this.#own = [];
    if (own.length === 0) return;
    try {
      await this.#socket.send(join(own));
    } catch {
      // Its end is told by the socket's events.
    }
  }

  async #sendAll(): Promise<void> {
    // What else this turn of the caller brings joins the first message.
    await Promise.resolve();
    while (this.#hasWork()) {
      const batch = this.#batch();
      if (batch.records.length === 0) return;
      const message = join(batch.records);
      if (this.#phase === "greeting") this.#phase = "awaiting";
      for (const call of batch.calls) {
        if (call.correlation !== undefined) this.#pending.set(call.correlation, call);
      }
      try {
        // The socket takes whatever it is given, until it is closed: then it rejects, and has sent nothing.
        await this.#socket.send(message);
      } catch {
        this.#unsent(batch.calls);
        return;
      }
      for (const call of batch.calls) call.taken();
    }
  }

  /** Calls that the socket did not take go to another server, unless they have ended. */
  #unsent(calls: readonly Call[]): void {
    const waiting = calls.filter((call) => !call.ended);
    for (const call of waiting) {
      if (call.correlation !== undefined) this.#pending.delete(call.correlation);
      call.correlation = undefined;
    }
    if (waiting.length > 0) this.#owner.lost(this, waiting);
  }

  /** The records of the next message, and the calls among them. */
  #batch(): { readonly records: readonly Bytes[]; readonly calls: readonly Call[] } {
    const records = this.#own;
    this.#own = [];
    const calls: Call[] = [];
    let bytes = records.reduce((sum, record) => sum + PREFIX + record.length, 0);
    let blocked = false;
    for (const call of this.#queue) {
      const most = mostBytes(call);
      blocked = !this.#hasRoom(bytes + most);
      if (blocked || (records.length > 0 && bytes + most > COALESCE_BYTES)) break;
      this.#queue.delete(call);
      const record = this.#encode(call);
      if (record === undefined) continue;
      calls.push(call);
      records.push(record);
      this.#large ||= isLarge(record);
      bytes += PREFIX + record.length;
    }
    const ahead = this.#given + bytes - this.#read;
    if (this.#liveness?.waits === false && (calls.length > 0 ? ahead >= ASK_BYTES : blocked && !this.#paused)) {
      this.#ask();
      records.push(...this.#own);
      this.#own = [];
    }
    this.#given += records.reduce((sum, record) => sum + PREFIX + record.length, 0);
    if (this.#asked < 0 && records.some((record) => record[1] === RecordKind.Probe)) this.#asked = this.#given;
    return { records, calls };
  }

  /** The record of a call, now that its time and its server are known; `undefined` where it cannot be sent there. */
  #encode(call: Call): Bytes | undefined {
    const server = this.#server;
    if (server === undefined || call.ended) return undefined;
    const { parts } = call;
    const correlation = parts.isRequest ? this.#owner.nextCorrelation() : undefined;
    const head = callHead({
      request: correlation === undefined ? undefined : { correlation, timeoutMs: call.timeLeft() },
      operation: server.operations.get(parts.packet) ?? parts.operation,
      metadata: parts.metadata,
    });
    const length = head.length + parts.payload.length;
    if (length > server.maxRecord) {
      call.failed(
        new ArgumentError("message", `needs ${length} bytes on the wire; this link carries at most ${server.maxRecord}`),
      );
      return undefined;
    }
    call.correlation = correlation;
    const record = new Uint8Array(length);
    record.set(head);
    record.set(parts.payload, head.length);
    return record;
  }
}

/** What a call's record needs at most, with its length, its head and its names. */
function mostBytes({ parts }: Call): number {
  return PREFIX + 24 + 2 * 256 + 2 + parts.metadata.length + parts.payload.length;
}

/** Whether a record may be under way for so long that no probe gets past it in time. */
function isLarge(record: Bytes): boolean {
  return record.length > COALESCE_BYTES;
}

/** Records as one message. */
function join(records: readonly Bytes[]): Bytes {
  const out = new Uint8Array(records.reduce((sum, record) => sum + PREFIX + record.length, 0));
  const view = new DataView(out.buffer);
  let at = 0;
  for (const record of records) {
    view.setUint32(at, record.length, true);
    out.set(record, at + PREFIX);
    at += PREFIX + record.length;
  }
  return out;
}
