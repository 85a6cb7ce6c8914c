// Whether a server may be linked with: what this side says of itself, and what it makes of the answer. Pure; it must not
// know sockets.

import { Buffer } from "node:buffer";

import type { Bytes } from "./codec.js";
import { utf8 } from "./codec.js";
import { DecodeError } from "./errors.js";
import { service } from "./record.js";
import { Hello, NodeState, ObjectRole, RecordKind, Reject, RejectReason, Topology, Update } from "./wire.js";

/** The least that the greatest record of a side may be, in bytes: calls and news need as much. */
export const LEAST_MESSAGE_BYTES = 4096;
const MINOR = 0;
const MAX_CHANNELS = 4096;
const MAX_OPERATIONS = 16_384;
const MAX_WEIGHT = 10_000;
const MAX_NAME_BYTES = 255;
const MAX_ERROR_TEXT = 256;

/** What this side says of itself. */
export interface Local {
  readonly channel: string;
  /** Its RID, in ASCII. */
  readonly rid: string;
  readonly generation: bigint;
  readonly securityIdentity: string;
  /** The greatest record it takes, in bytes. */
  readonly maxMessage: number;
}

/** A server that was admitted, as it describes itself. */
export interface Server {
  readonly rid: Bytes;
  readonly generation: bigint;
  revision: bigint;
  weight: number;
  draining: boolean;
  /** The greatest record that both sides take, in bytes. */
  readonly maxRecord: number;
  /** The numbers of its packets in this channel. */
  readonly operations: ReadonlyMap<string, number>;
}

/** A link that is refused: the reason, by its number on the wire, and a text for people. */
export class Refusal extends Error {
  readonly reason: RejectReason;

  constructor(reason: RejectReason, text: string) {
    super(text);
    this.reason = reason;
  }

  /** The name of its reason, and its text. */
  toText(): string {
    const [name] = Object.entries(RejectReason).find(([, reason]) => reason === this.reason) ?? [];
    return `${name}: ${this.message}`;
  }
}

/** The hello of this side, as a record. */
export function hello(local: Local): Bytes {
  const body = Hello.encode({
    topology: Topology.ClientServer,
    scope: local.channel,
    rid: utf8(local.rid),
    generation: local.generation,
    revision: 1n,
    role: ObjectRole.None,
    securityIdentity: local.securityIdentity,
    maxMessage: BigInt(local.maxMessage),
    state: NodeState.Serving,
    minor: MINOR,
  });
  return service(RecordKind.Hello, body);
}

/** What tells a server that its admit is refused, as a record. */
export function reject(refusal: Refusal): Bytes {
  let text = refusal.message;
  while (Buffer.byteLength(text) > MAX_ERROR_TEXT) text = [...text].slice(0, -1).join("");
  return service(RecordKind.Reject, Reject.encode({ reason: refusal.reason, text }));
}

/** Judges a server's admit. Throws `Refusal`. */
export function judge(local: Local, body: Bytes): Server {
  const hello = decodedHello(body);
  const [required] = hello.capabilities;
  if (required !== undefined) {
    throw new Refusal(RejectReason.Capability, `it requires the capability ${JSON.stringify(required)}`);
  }
  if (hello.channels.length > MAX_CHANNELS || hello.operations.length > MAX_OPERATIONS) {
    throw new Refusal(RejectReason.ResourceLimit, "it lists too many channels or operations");
  }
  if (hello.topology !== Topology.ClientServer) {
    throw new Refusal(RejectReason.Topology, `this is channel client ${JSON.stringify(local.channel)}, not a mesh`);
  }
  const known: readonly number[] = [ObjectRole.Unspecified, ObjectRole.None, ObjectRole.Client, ObjectRole.Server];
  if (!known.includes(hello.role)) throw invalid("it names no known object role");
  if (hello.state !== NodeState.Serving && hello.state !== NodeState.Draining) throw invalid("it names no known state");
  if (hello.revision === 0n) throw invalid("its revision is 0");
  if (hello.generation === 0n) throw invalid("its generation is 0");
  if (hello.maxMessage < BigInt(LEAST_MESSAGE_BYTES)) throw invalid(`it takes ${hello.maxMessage} bytes, which is too few`);
  checkName(hello.scope);
  if (hello.rid.length === 0) throw invalid("its RID is empty");
  const names = new Set<string>();
  for (const { name, weight } of hello.channels) {
    checkName(name);
    if (weight > MAX_WEIGHT) throw invalid(`channel ${JSON.stringify(name)} has weight ${weight}, over ${MAX_WEIGHT}`);
    if (names.has(name)) throw invalid(`channel ${JSON.stringify(name)} is listed twice`);
    names.add(name);
  }
  const operations = new Map<string, number>();
  hello.operations.forEach(({ channel, packet }, number) => {
    if (channel !== "") checkName(channel);
    checkName(packet);
    if (channel !== local.channel) return;
    if (operations.has(packet)) throw invalid(`operation ${JSON.stringify(packet)} is listed twice`);
    operations.set(packet, number);
  });
  if (hello.scope !== local.channel) {
    throw new Refusal(
      RejectReason.Channel,
      `this is channel ${JSON.stringify(local.channel)}, not ${JSON.stringify(hello.scope)}`,
    );
  }
  if (hello.securityIdentity !== local.securityIdentity) {
    throw new Refusal(RejectReason.SecurityIdentity, "the security identities differ");
  }
  const [membership] = hello.channels;
  if (membership === undefined || hello.channels.length !== 1 || membership.name !== local.channel) {
    throw new Refusal(RejectReason.Channel, `it does not serve channel ${JSON.stringify(local.channel)}`);
  }
  const most = hello.maxMessage < BigInt(local.maxMessage) ? Number(hello.maxMessage) : local.maxMessage;
  return {
    rid: hello.rid,
    generation: hello.generation,
    revision: hello.revision,
    weight: membership.weight,
    draining: hello.state === NodeState.Draining,
    maxRecord: most,
    operations,
  };
}

/** Applies a live change, unless an older one; tells whether anything changed. Throws an error where the change is none that a live link may see. */
export function update(server: Server, channel: string, body: Bytes): boolean {
  const { revision, state, channels } = Update.decode(body);
  const [membership] = channels;
  if (membership === undefined || channels.length !== 1 || membership.name !== channel) {
    throw new Error("an update adds or removes a channel, which needs a new link");
  }
  if (membership.weight > MAX_WEIGHT) throw new Error(`an update has weight ${membership.weight}, over ${MAX_WEIGHT}`);
  if (state !== NodeState.Serving && state !== NodeState.Draining) throw new Error("an update names no known state");
  const draining = state === NodeState.Draining;
  if (revision <= server.revision) return false;
  const same = membership.weight === server.weight && draining === server.draining;
  server.revision = revision;
  server.weight = membership.weight;
  server.draining = draining;
  return !same;
}

/** What a reject says; `undefined` where it says nothing that this protocol has. */
export function rejected(body: Bytes): Refusal | undefined {
  try {
    const { reason, text } = Reject.decode(body);
    const known: readonly number[] = Object.values(RejectReason);
    return reason === RejectReason.Unspecified || !known.includes(reason) ? undefined : new Refusal(reason, text);
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}

function decodedHello(body: Bytes): Hello {
  try {
    return Hello.decode(body);
  } catch (error) {
    if (error instanceof DecodeError) throw invalid(error.message);
    throw error;
  }
}

function checkName(name: string): void {
  const length = Buffer.byteLength(name);
  if (length < 1 || length > MAX_NAME_BYTES || name.includes("\0")) {
    throw invalid(`a name of it has ${length} bytes or a NUL; 1 to ${MAX_NAME_BYTES} bytes without NUL are allowed`);
  }
}

function invalid(text: string): Refusal {
  return new Refusal(RejectReason.InvalidDescriptor, text);
}

/** Whether a text can be a name. */
export function isName(bytes: Bytes): boolean {
  return bytes.length >= 1 && bytes.length <= MAX_NAME_BYTES && !bytes.includes(0);
}
