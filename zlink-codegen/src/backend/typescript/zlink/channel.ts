// The client of one ClientServer channel: links with its servers, and calls over them. It must not know sockets or
// records.

import { Buffer } from "node:buffer";
import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { LEAST_MESSAGE_BYTES, Refusal, isName } from "./admission.js";
import type { Local } from "./admission.js";
import { Backoff, afterRefusal } from "./backoff.js";
import { Call } from "./call.js";
import type { CallParts } from "./call.js";
import { utf8 } from "./codec.js";
import type { Bytes, MessageType } from "./codec.js";
import { ArgumentError, CallError, DecodeError, EncodeError } from "./errors.js";
import { Link } from "./link.js";
import type { Ended, LinkOwner } from "./link.js";
import { Metadata } from "./metadata.js";
import { Selector } from "./select.js";
import { RejectReason } from "./wire.js";
import { MAX_BYTES } from "./writer.js";

/** A request where neither call nor schema gives a timeout. */
const REQUEST_TIMEOUT_MS = 30_000;
/** The longest timeout that can be set. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
/** The greatest record this side takes where nothing else is set. */
const MESSAGE_BYTES = 16 * 1024 * 1024;
const MAX_ENDPOINT_BYTES = 4096;
const MAX_PORT = 65_535;
const MAX_IDENTITY_BYTES = 255;
/** A link that was there for this long was worth dialling at once again. */
const STEADY_MS = 1_000;
/** What `close` waits for where nothing else is said. */
const CLOSE_MS = 2_000;

/** How a client finds and greets its servers. */
export interface ChannelOptions {
  /** Where the servers listen, each `tcp://host:port` or `ipc://path`. Every one gets a link of its own. */
  readonly connect: string | readonly string[];
  /** How long a request may take as a whole where neither it nor its schema says; 30 s. */
  readonly timeoutMs?: number | undefined;
  /** How long a one-way message may wait for a server and for room; it waits as long as it takes where nothing is set. */
  readonly sendTimeoutMs?: number | undefined;
  /** The greatest record this side takes, in bytes; 16 MiB. The smaller of both sides holds. */
  readonly maxMessage?: number | undefined;
  /** A text that both sides must have been given alike. */
  readonly securityIdentity?: string | undefined;
  /** Is told of what happens to links, for a log. What it throws is dropped. */
  readonly onEvent?: ((event: ChannelEvent) => void) | undefined;
}

/** Something that happened to a link. */
export interface ChannelEvent {
  /** `ready` and `lost` links, attempts that `failed`, links that were `refused`, and `unexpected` records. */
  readonly type: "ready" | "lost" | "failed" | "refused" | "unexpected";
  readonly endpoint: string;
  /** For people. */
  readonly detail: string;
}

/** What a one-way message may be told. */
export interface SendOptions {
  /** Text beside the message: at most 1024 bytes of it. */
  readonly metadata?: Metadata | Readonly<Record<string, string>> | undefined;
  /**
   * Cancels: a call that no server was given yet is withdrawn, any other is only not waited for. It rejects with the
   * reason of the signal.
   */
  readonly signal?: AbortSignal | undefined;
}

/** What a request may be told. */
export interface RequestOptions extends SendOptions {
  /** How long it may take as a whole, waiting for a server included: up to 2^31-1 ms, rounded up. */
  readonly timeoutMs?: number | undefined;
}

/** A server of the channel, as this side sees it. */
export interface ServerStatus {
  readonly endpoint: string;
  /** A `paused` one takes nothing now; a `draining` one finishes what it has. */
  readonly state: "connecting" | "ready" | "paused" | "draining";
  /** Who it is and what share of the calls it takes, while there is a link. */
  readonly rid: Bytes | undefined;
  readonly weight: number | undefined;
  /** Requests that wait for its replies. */
  readonly pending: number;
  /** Why the last attempt failed, until one succeeds. */
  readonly failure: string | undefined;
}

/** What a call promises: nothing for a one-way message once a server's link took it, the reply for a request. */
export type Reply<T> = Promise<T>;

/** Calls that a signal cancels, and what tells them: one listener, however many they are. */
interface Watched {
  readonly calls: Set<Call>;
  readonly stop: () => void;
}

interface Endpoint {
  readonly endpoint: string;
  link: Link | undefined;
  failure: string | undefined;
  /** It has answered, when it was last asked, that it is something else. */
  elsewhere: boolean;
}

/** The client of one channel. It keeps the process alive until it is closed. */
export class Channel {
  /** Its ChannelName. */
  readonly name: string;
  readonly #options: ChannelOptions;
  readonly #channelBytes: Bytes;
  readonly #endpoints: readonly Endpoint[];
  readonly #selector = new Selector<Link>();
  /** Calls for which there is no server yet, in order. */
  readonly #waiting = new Set<Call>();
  readonly #watched = new Map<AbortSignal, Watched>();
  readonly #packets = new Map<string, Bytes>();
  readonly #stop = new AbortController();
  readonly #dialling: Promise<void>;
  #closing: Promise<void> | undefined;
  #correlation = 0;
  #changed: (() => void)[] = [];

  /** Begins to link with the servers. Throws `ArgumentError` where an option is wrong. */
  constructor(name: string, options: ChannelOptions) {
    this.name = name;
    this.#options = options;
    this.#channelBytes = checkedName(name, "channel");
    checkTimeout(options.timeoutMs, "timeoutMs");
    checkTimeout(options.sendTimeoutMs, "sendTimeoutMs");
    const { maxMessage = MESSAGE_BYTES, securityIdentity = "" } = options;
    if (!Number.isInteger(maxMessage) || maxMessage < LEAST_MESSAGE_BYTES || maxMessage > MAX_BYTES) {
      throw new ArgumentError("maxMessage", `is ${maxMessage}, and not in ${LEAST_MESSAGE_BYTES}..=${MAX_BYTES} bytes`);
    }
    if (textBytes(securityIdentity, "securityIdentity").length > MAX_IDENTITY_BYTES) {
      throw new ArgumentError("securityIdentity", `has more than ${MAX_IDENTITY_BYTES} bytes`);
    }
    const generation = randomBytes(8).readBigUInt64LE() | 1n;
    // Each endpoint is a client of its own to its server: two of them may lead to the same one.
    const local = (): Local => ({
      channel: name,
      rid: `client-${randomUUID()}`,
      generation,
      securityIdentity,
      maxMessage,
    });
    const endpoints = typeof options.connect === "string" ? [options.connect] : options.connect;
    for (const endpoint of endpoints) {
      if (textBytes(endpoint, "connect").length > MAX_ENDPOINT_BYTES || !isEndpoint(endpoint)) {
        throw new ArgumentError("connect", `${JSON.stringify(endpoint)} is neither tcp://host:port nor ipc://path`);
      }
    }
    if (endpoints.length === 0) throw new ArgumentError("connect", "names no server");
    this.#endpoints = [...new Set(endpoints)].map((endpoint) => ({
      endpoint,
      link: undefined,
      failure: undefined,
      elsewhere: false,
    }));
    this.#dialling = Promise.all(this.#endpoints.map((endpoint) => this.#dial(endpoint, local()))).then(() => undefined);
  }

  /**
   * Makes a request. Rejects with a `CallError` where it fails, with an `ArgumentError` where it was made wrongly, and
   * with the reason of its signal where that was aborted.
   */
  request<Input, T>(
    packet: string,
    request: MessageType<unknown, Input>,
    reply: MessageType<T, never>,
    schemaTimeoutMs: number | undefined,
    value: Input,
    options: RequestOptions = {},
  ): Promise<T> {
    return this.#call(packet, request, value, options, () => {
      checkTimeout(options.timeoutMs, "timeoutMs");
      const given = options.timeoutMs ?? schemaTimeoutMs ?? this.#options.timeoutMs ?? REQUEST_TIMEOUT_MS;
      return { timeoutMs: Math.ceil(given), isRequest: true };
    }).then((payload) => {
      try {
        return reply.decode(payload);
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error;
        throw new CallError("ProtocolError", "Unknown", `the reply cannot be decoded: ${error.message}`, {
          cause: error,
        });
      }
    });
  }

  /**
   * Sends a one-way message. Resolves once a server's link has taken it, which says nothing of its handler. Rejects as
   * `request` does.
   */
  send<Input>(
    packet: string,
    message: MessageType<unknown, Input>,
    value: Input,
    options: SendOptions = {},
  ): Promise<void> {
    return this.#call(packet, message, value, options, () => {
      const limit = this.#options.sendTimeoutMs;
      return { timeoutMs: limit === undefined ? undefined : Math.ceil(limit), isRequest: false };
    }).then(() => undefined);
  }

  /** Waits until that many servers may be called. Rejects with a `CallError` after `timeoutMs`, where that is given. */
  async ready(servers = 1, options: RequestOptions = {}): Promise<void> {
    checkTimeout(options.timeoutMs, "timeoutMs");
    const deadline = options.timeoutMs === undefined ? undefined : AbortSignal.timeout(options.timeoutMs);
    while (this.#selector.size < servers) {
      options.signal?.throwIfAborted();
      if (this.#stop.signal.aborted) throw shuttingDown();
      if (deadline?.aborted === true) {
        throw new CallError("DeadlineExceeded", "NotExecuted", `${this.#selector.size} of ${servers} servers are ready`);
      }
      await new Promise<void>((resolve) => {
        const wake = () => {
          deadline?.removeEventListener("abort", wake);
          options.signal?.removeEventListener("abort", wake);
          resolve();
        };
        this.#changed.push(wake);
        deadline?.addEventListener("abort", wake);
        options.signal?.addEventListener("abort", wake);
      });
    }
  }

  /** Its servers as they are now, one per endpoint. */
  servers(): readonly ServerStatus[] {
    return this.#endpoints.map(({ endpoint, link, failure }) => {
      const server = link?.isReady === true ? link.server : undefined;
      const ready = link?.isPaused === true ? "paused" : "ready";
      return {
        endpoint,
        state: server === undefined ? "connecting" : server.draining ? "draining" : ready,
        rid: server?.rid,
        weight: server?.weight,
        pending: link?.pending ?? 0,
        failure,
      };
    });
  }

  /**
   * Takes no new calls, waits up to `graceMs` for the replies to those that were sent and for one-way messages to be
   * read, and ends the links. Calls that are left then end with `ShuttingDown`. Further calls of it wait for the same.
   */
  close(graceMs = CLOSE_MS): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<void> {
    this.#stop.abort();
    const text = "the client is being closed";
    for (const call of this.#waiting) call.stopped("ShuttingDown", text);
    const links = this.#endpoints.flatMap(({ link }) => (link === undefined ? [] : [link]));
    const grace = new AbortController();
    const limit = sleep(Math.max(0, graceMs), undefined, { signal: grace.signal }).catch(() => undefined);
    await Promise.race([Promise.all(links.map((link) => link.quiet())), limit]);
    grace.abort();
    for (const link of links) link.end(text);
    await this.#dialling;
    this.#wake();
  }

  #call<Input>(
    packet: string,
    message: MessageType<unknown, Input>,
    value: Input,
    options: SendOptions,
    kind: () => Pick<CallParts, "timeoutMs" | "isRequest">,
  ): Promise<Bytes> {
    return new Promise((resolve, reject) => {
      options.signal?.throwIfAborted();
      if (this.#stop.signal.aborted) throw shuttingDown();
      const parts: CallParts = {
        ...kind(),
        packet,
        operation: { channel: this.#channelBytes, packet: this.#packetBytes(packet) },
        metadata: encodedMetadata(options.metadata),
        payload: encoded(message, value),
        signal: options.signal,
      };
      const owner = { forget: (call: Call) => this.#forget(call), missed: () => this.#missed() };
      const call = new Call(parts, resolve, reject, owner);
      if (options.signal !== undefined) this.#watch(options.signal, call);
      this.#route(call);
    });
  }

  #packetBytes(packet: string): Bytes {
    const known = this.#packets.get(packet);
    if (known !== undefined) return known;
    const bytes = checkedName(packet, "packet");
    this.#packets.set(packet, bytes);
    return bytes;
  }

  /** Gives a call to the server in turn, or lets it wait for one. */
  #route(call: Call): void {
    const link = this.#selector.pick((link) => link.isOpen);
    if (link !== undefined) {
      link.push(call);
    } else if (this.#waitsInVain()) {
      call.stopped("NotFound", `no endpoint has a server of channel ${JSON.stringify(this.name)}${this.#why()}`);
    } else {
      call.link = undefined;
      this.#waiting.add(call);
    }
  }

  /** Whether each endpoint has answered that what is wanted is not there. */
  #waitsInVain(): boolean {
    return this.#endpoints.every(({ elsewhere }) => elsewhere);
  }

  /** What hinders the links that are not there. */
  #why(): string {
    const missing = this.#endpoints.filter(({ link }) => link?.isReady !== true);
    return missing.map(({ endpoint, failure }) => `; ${endpoint}: ${failure ?? "no attempt has ended yet"}`).join("");
  }

  /** Why a call that waited has run out of time. */
  #missed(): string {
    if (this.#selector.size > 0) return "no room to send appeared in time";
    return `no server of channel ${JSON.stringify(this.name)} was ready in time${this.#why()}`;
  }

  #watch(signal: AbortSignal, call: Call): void {
    const known = this.#watched.get(signal);
    if (known !== undefined) {
      known.calls.add(call);
      return;
    }
    const calls = new Set([call]);
    const stop = () => {
      for (const call of calls) call.cancelled(signal.reason);
    };
    signal.addEventListener("abort", stop, { once: true });
    this.#watched.set(signal, { calls, stop });
  }

  #unwatch(signal: AbortSignal, call: Call): void {
    const watched = this.#watched.get(signal);
    if (watched?.calls.delete(call) === true && watched.calls.size === 0) {
      signal.removeEventListener("abort", watched.stop);
      this.#watched.delete(signal);
    }
  }

  #forget(call: Call): void {
    if (call.parts.signal !== undefined) this.#unwatch(call.parts.signal, call);
    this.#waiting.delete(call);
    call.link?.forget(call);
  }

  /** Selection begins anew with the servers as they are; what waits goes on. */
  #reselect(): void {
    const links = this.#endpoints.flatMap(({ link }) => (link?.isReady === true ? [link] : []));
    const candidates = links.flatMap((link) => {
      const { server } = link;
      if (server === undefined || server.draining || server.weight === 0) return [];
      return [{ rid: server.rid, weight: server.weight, target: link }];
    });
    this.#selector.update(candidates);
    this.#wake();
    if (candidates.length === 0) return;
    // What waits for room at a server that is not selected any more may go to another one.
    const passedOver = links.filter((link) => candidates.every(({ target }) => target !== link));
    const stranded = passedOver.flatMap((link) => link.takeUnsent());
    const waiting = [...stranded, ...this.#waiting];
    this.#waiting.clear();
    for (const call of waiting) this.#route(call);
  }

  #wake(): void {
    const changed = this.#changed;
    this.#changed = [];
    for (const wake of changed) wake();
  }

  /** Makes the link of an endpoint again and again, until the channel is closed. */
  async #dial(endpoint: Endpoint, local: Local): Promise<void> {
    const backoff = new Backoff();
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const link = new Link(endpoint.endpoint, this.#owner(endpoint, local));
      endpoint.link = link;
      const ended = await link.run();
      endpoint.link = undefined;
      endpoint.failure = ended.reason;
      const reason = ended.refusal?.reason;
      endpoint.elsewhere = reason === RejectReason.Topology || reason === RejectReason.Channel;
      this.#tell(endpoint, ended);
      if (this.#waitsInVain()) for (const call of this.#waiting) this.#route(call);
      if (ended.readyAt !== undefined && performance.now() - ended.readyAt >= STEADY_MS) backoff.reset();
      const seldom = ended.refusal?.reason === RejectReason.Identity;
      const pause = seldom ? afterRefusal(Math.random()) : backoff.next(Math.random());
      // It rejects where the channel is closed, which ends the loop.
      await sleep(pause, undefined, { signal }).catch(() => undefined);
      if (ended.refusal?.reason === RejectReason.Duplicate) await this.#untilAlone(link, signal);
    }
  }

  /** Another endpoint leads to the same server: this one has nothing to do while that link lives. */
  async #untilAlone(link: Link, signal: AbortSignal): Promise<void> {
    const rid = link.server?.rid;
    while (rid !== undefined && !signal.aborted && this.#linkTo(rid, link) !== undefined) {
      await new Promise<void>((resolve) => this.#changed.push(resolve));
    }
  }

  #linkTo(rid: Bytes, but: Link): Link | undefined {
    const links = this.#endpoints.map(({ link }) => link);
    return links.find(
      (link) =>
        link?.isReady === true && link !== but && link.server !== undefined && Buffer.compare(link.server.rid, rid) === 0,
    );
  }

  #owner(endpoint: Endpoint, local: Local): LinkOwner {
    return {
      local,
      nextCorrelation: () => (this.#correlation += 1),
      ready: (link) => {
        const { server } = link;
        const other = server === undefined ? undefined : this.#linkTo(server.rid, link);
        if (server !== undefined && other !== undefined) {
          if (other.server?.generation === server.generation) {
            throw new Refusal(RejectReason.Duplicate, "another link leads to the same server");
          }
          other.close("replaced by a link to a later run of the server");
        }
        endpoint.failure = undefined;
        endpoint.elsewhere = false;
        this.#report({ type: "ready", endpoint: endpoint.endpoint, detail: "linked" });
        this.#reselect();
      },
      changed: () => this.#reselect(),
      lost: (_, unsent) => {
        for (const call of unsent) this.#waiting.add(call);
        this.#reselect();
        if (this.#stop.signal.aborted) {
          for (const call of this.#waiting) call.stopped("ShuttingDown", "the client is being closed");
        }
      },
      report: (_, detail) => this.#report({ type: "unexpected", endpoint: endpoint.endpoint, detail }),
    };
  }

  #tell({ endpoint }: Endpoint, ended: Ended): void {
    if (this.#stop.signal.aborted) return;
    const type = ended.readyAt !== undefined ? "lost" : ended.refusal === undefined ? "failed" : "refused";
    this.#report({ type, endpoint, detail: ended.reason });
  }

  #report(event: ChannelEvent): void {
    try {
      this.#options.onEvent?.(event);
    } catch {
      // A log that fails changes no call.
    }
  }
}

function isEndpoint(text: string): boolean {
  const port = /^tcp:\/\/[^*].*:([1-9][0-9]{0,4})$/.exec(text)?.[1];
  return port === undefined ? /^ipc:\/\/.+$/.test(text) : Number(port) <= MAX_PORT;
}

function textBytes(text: string, argument: string): Bytes {
  try {
    return utf8(text);
  } catch (error) {
    if (!(error instanceof EncodeError)) throw error;
    throw new ArgumentError(argument, error.message, { cause: error });
  }
}

function shuttingDown(): CallError {
  return new CallError("ShuttingDown", "NotExecuted", "the client is closed");
}

function checkedName(name: string, argument: string): Bytes {
  const bytes = textBytes(name, argument);
  if (!isName(bytes)) throw new ArgumentError(argument, "is no name: 1 to 255 bytes without NUL are allowed");
  return bytes;
}

function checkTimeout(timeoutMs: number | undefined, argument: string): void {
  if (timeoutMs === undefined) return;
  if (!(timeoutMs > 0) || Math.ceil(timeoutMs) > MAX_TIMEOUT_MS) {
    throw new ArgumentError(argument, `is ${timeoutMs} ms; above 0 and up to ${MAX_TIMEOUT_MS} is allowed`);
  }
}

function encodedMetadata(metadata: SendOptions["metadata"]): Bytes {
  if (metadata === undefined) return new Uint8Array();
  if (metadata instanceof Metadata) return metadata.encode();
  const snapshot = new Metadata();
  for (const [key, value] of Object.entries(metadata)) snapshot.set(key, value);
  return snapshot.encode();
}

function encoded<Input>(message: MessageType<unknown, Input>, value: Input): Bytes {
  try {
    return message.encode(value);
  } catch (error) {
    if (!(error instanceof EncodeError)) throw error;
    throw new ArgumentError("message", error.message, { cause: error });
  }
}
