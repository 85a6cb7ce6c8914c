// Records: what travels on a link. Heads and messages are generated from the wire's schema; what a schema cannot say,
// which parts the flags of a head bring and in which order, is written here. It must not know sockets or calls.

import type { Bytes } from "./codec.js";
import { errorKind } from "./errors.js";
import type { ErrorKind, Execution } from "./errors.js";
import { FlowHead, ProbeHead, RecordHead, RecordKind, ReplyHead, RequestHead, SendHead } from "./wire.js";

/** The protocol major. */
const MAJOR = 1;
/** The `operation` of a record whose names follow as text. */
const NAMED = 0xffff_ffff;
const FLAG_METADATA = 1;
const REQUIRED_FLAGS = 0x00ff;
/** The longest text an error carries, in bytes. */
export const MAX_ERROR_TEXT = 256;
/** Records of one ZeroMQ message are joined up to this many bytes. */
export const COALESCE_BYTES = 64 * 1024;
/** Before a record, its length. */
export const PREFIX = 4;

/** The names of what is called. */
export interface Operation {
  readonly channel: Bytes;
  readonly packet: Bytes;
}

/** Everything of a call but its payload. */
export interface CallHead {
  /** Correlation, never 0, and remaining milliseconds, at least 1; only of a request. */
  readonly request: { readonly correlation: number; readonly timeoutMs: number } | undefined;
  /** Its number in the receiver's list, or its names. */
  readonly operation: number | Operation;
  /** The encoded snapshot; empty for none. */
  readonly metadata: Bytes;
}

/** What a record of a server is. Servers send no others. */
export type Incoming =
  | { readonly is: "reply"; readonly correlation: number; readonly payload: Bytes }
  | { readonly is: "failure"; readonly correlation: number; readonly kind: ErrorKind; readonly execution: Execution; readonly text: string }
  | { readonly is: "service"; readonly kind: RecordKind; readonly body: Bytes }
  | { readonly is: "probe" | "probeAck"; readonly id: bigint }
  | { readonly is: "flow"; readonly version: bigint; readonly paused: boolean };

/** A record that cannot be used, and the request that it would have ended. */
export class Malformed extends Error {
  readonly correlation: number | undefined;

  constructor(what: string, correlation?: number) {
    super(what);
    this.correlation = correlation;
  }
}

const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The head and what stands before the payload of a call. */
export function call(head: CallHead): Bytes {
  const { request, operation, metadata } = head;
  const fixed = request === undefined ? SendHead.size : RequestHead.size;
  const names = typeof operation === "number" ? 0 : 2 + operation.channel.length + operation.packet.length;
  const out = new Uint8Array(fixed + names + (metadata.length === 0 ? 0 : 2 + metadata.length));
  const view = new DataView(out.buffer);
  const common = {
    major: MAJOR,
    flags: metadata.length === 0 ? 0 : FLAG_METADATA,
    operation: typeof operation === "number" ? operation : NAMED,
  };
  if (request === undefined) {
    SendHead.put(view, 0, { ...common, kind: RecordKind.ChannelSend });
  } else {
    RequestHead.put(view, 0, {
      ...common,
      kind: RecordKind.ChannelRequest,
      correlation: BigInt(request.correlation),
      timeoutMs: request.timeoutMs,
      reserved: 0,
    });
  }
  let at = fixed;
  if (typeof operation !== "number") {
    for (const name of [operation.channel, operation.packet]) {
      view.setUint8(at, name.length);
      out.set(name, at + 1);
      at += 1 + name.length;
    }
  }
  if (metadata.length !== 0) {
    view.setUint16(at, metadata.length, true);
    out.set(metadata, at + 2);
  }
  return out;
}

/** A whole service record: a head and its encoded message. */
export function service(kind: RecordKind, body: Bytes): Bytes {
  const out = new Uint8Array(RecordHead.size + body.length);
  RecordHead.put(new DataView(out.buffer), 0, { major: MAJOR, kind, flags: 0 });
  out.set(body, RecordHead.size);
  return out;
}

/** A whole probe, or its answer. */
export function probe(kind: RecordKind, id: bigint): Bytes {
  const out = new Uint8Array(ProbeHead.size);
  ProbeHead.put(new DataView(out.buffer), 0, { major: MAJOR, kind, flags: 0, reserved: 0, id });
  return out;
}

/** Cuts a frame into its records, each a view. Throws `Malformed` where lengths do not add up. */
export function* records(frame: Bytes, maxRecord: number): Generator<Bytes, void, void> {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  let at = 0;
  while (at < frame.length) {
    const length = at + PREFIX <= frame.length ? view.getUint32(at, true) : 0;
    at += PREFIX;
    if (length === 0 || at + length > frame.length) throw new Malformed("the lengths of a frame's records do not add up");
    if (length > maxRecord) throw new Malformed(`a record has ${length} bytes, over the limit of ${maxRecord}`);
    yield frame.subarray(at, at + length);
    at += length;
  }
}

/** Reads the parts of a record. Throws `Malformed` where it cannot be used. */
export function parse(record: Bytes): Incoming {
  const view = new DataView(record.buffer, record.byteOffset, record.byteLength);
  const need = (size: number) => {
    if (record.length < size) throw new Malformed("the record ends inside its head");
  };
  need(RecordHead.size);
  const { major, kind, flags } = RecordHead.get(view, 0);
  if (major !== MAJOR) throw new Malformed("the record is of another protocol major");
  switch (kind) {
    case RecordKind.Reply: {
      need(ReplyHead.size);
      return reply(record, ReplyHead.get(view, 0));
    }
    case RecordKind.Admit:
    case RecordKind.Reject:
    case RecordKind.Update:
      return { is: "service", kind, body: record.subarray(behindBlocks(record, RecordHead.size, flags)) };
    case RecordKind.Probe:
    case RecordKind.ProbeAck: {
      need(ProbeHead.size);
      nothingMore(record, ProbeHead.size, flags);
      const { id } = ProbeHead.get(view, 0);
      if (id === 0n) throw new Malformed("a probe has id 0");
      return { is: kind === RecordKind.Probe ? "probe" : "probeAck", id };
    }
    case RecordKind.Flow: {
      need(FlowHead.size);
      nothingMore(record, FlowHead.size, flags);
      const { version, paused } = FlowHead.get(view, 0);
      if (paused > 1) throw new Malformed("a receive flow is neither 0 nor 1");
      return { is: "flow", version, paused: paused === 1 };
    }
    default:
      throw new Malformed(`a record of kind ${kind} came, which no server sends`);
  }
}

function reply(record: Bytes, head: ReplyHead): Incoming {
  // A number beyond what is exact here is none of this side's correlations.
  const correlation = Number(head.correlation);
  let payload: Bytes;
  try {
    payload = record.subarray(behindBlocks(record, ReplyHead.size, head.flags));
  } catch (error) {
    throw error instanceof Malformed ? new Malformed(error.message, correlation) : error;
  }
  if (head.failed === 0 && head.error === 0 && head.executed === 0) return { is: "reply", correlation, payload };
  if (head.failed !== 1 || head.executed > 1) {
    throw new Malformed("a reply combines its result fields in an undefined way", correlation);
  }
  const kind = errorKind(head.error);
  if (kind === undefined) throw new Malformed("a reply has an unknown error number", correlation);
  let text: string | undefined;
  try {
    text = payload.length <= MAX_ERROR_TEXT ? textDecoder.decode(payload) : undefined;
  } catch {
    text = undefined;
  }
  if (text === undefined) {
    throw new Malformed("the text of an error reply is not UTF-8 of at most 256 bytes", correlation);
  }
  return { is: "failure", correlation, kind, execution: head.executed === 0 ? "NotExecuted" : "Unknown", text };
}

/** Skips what optional flags bring, which a newer minor may have put there. No record of a server has a required flag. */
function behindBlocks(record: Bytes, from: number, flags: number): number {
  if ((flags & REQUIRED_FLAGS) !== 0) throw new Malformed("the record has a required flag that is unknown here");
  let at = from;
  for (let optional = flags >> 8; optional !== 0; optional &= optional - 1) {
    const [low, high] = record.subarray(at, at + 2);
    if (low === undefined || high === undefined) throw cutOff();
    at += 2 + low + 256 * high;
    if (at > record.length) throw cutOff();
  }
  return at;
}

function cutOff(): Malformed {
  return new Malformed("a length in the record exceeds what is left of it");
}

function nothingMore(record: Bytes, from: number, flags: number): void {
  if (behindBlocks(record, from, flags) !== record.length) {
    throw new Malformed("bytes follow a record that has no payload");
  }
}
