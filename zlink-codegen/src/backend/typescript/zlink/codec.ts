// What generated code is written in: how values stand in bytes. Inline values here, the rest in writer and reader.
// It must not know records or links.

import { DecodeError, EncodeError, inside } from "./errors.js";
import { Reader } from "./reader.js";
import { Writer } from "./writer.js";

/** Bytes. What a message holds after decoding is a copy of its own. */
export type Bytes = Uint8Array;
/** A UUID as text, `01020304-0506-0708-090a-0b0c0d0e0f10`; decoded in lower case. */
export type Uuid = string;
/** A point in time: microseconds since the Unix epoch, before it where negative. `timestamp` makes one of a `Date`. */
export type Timestamp = bigint;
/** A length of time in microseconds, with a sign. */
export type Duration = bigint;
/** Names a Spot: 1 to 255 bytes of UTF-8 without NUL. */
export type SpotId = string;
/** Names an Actor: 1 to 255 bytes of UTF-8 without NUL. */
export type ActorId = string;
/** Values by text. */
export type StringMap<V> = ReadonlyMap<string, V>;
/** An enum's numbers: those its schema names, and any other that a newer program may send. */
export type OpenEnum<Named extends number | bigint> = Named | (Named extends bigint ? bigint & {} : number & {});

/** An exact incarnation of a Spot or an Actor, and where it was. */
interface ObjectRef {
  /** Its identity. */
  readonly id: string;
  /** Its incarnation: 1 to 2^63-1. */
  readonly generation: bigint;
  /** The MeshName, 1 to 255 bytes. */
  readonly mesh: string;
  /** The RID of the node, 1 to 255 bytes. */
  readonly node: Bytes;
}
/** An exact incarnation of a Spot, and where it was. */
export type SpotRef = ObjectRef;
/** An exact incarnation of an Actor, and where it was. */
export type ActorRef = ObjectRef;

/** The point in time that a `Date` is. */
export function timestamp(date: Date): Timestamp {
  return BigInt(date.getTime()) * 1000n;
}

/** A point in time as a `Date`, which counts milliseconds: what is finer is cut off towards the past. */
export function toDate(time: Timestamp): Date {
  const millis = time / 1000n;
  return new Date(Number(time % 1000n < 0n ? millis - 1n : millis));
}

/** A value that stands inline, in a slot of a table or in a vector: a scalar, an enum or a struct. */
export interface Inline<T> {
  /** Its bytes. */
  readonly size: number;
  /** What its first byte's position is a multiple of: 1, 2, 4 or 8. */
  readonly align: number;
  /** What an absent one reads as. */
  readonly none: T;
  /** A vector of them ends with a zero that belongs to nobody, as the official builder writes it. */
  readonly terminated?: boolean;
  /** Whether a field may leave it out, since absence means the same. */
  isElided(value: T): boolean;
  /** Writes it. Throws `EncodeError` where it is no such value. */
  put(view: DataView, at: number, value: T): void;
  /** Reads it; every byte string is one. */
  get(view: DataView, at: number): T;
}

/** Puts one field of a struct. */
export function put<T>(view: DataView, at: number, name: string, type: Inline<T>, value: T): void {
  try {
    type.put(view, at, value);
  } catch (error) {
    throw inside(error, name);
  }
}

/** A member of a union that is not known here: its content was not kept, so it cannot be encoded again. */
export interface UnknownMember {
  readonly kind: "unknown";
  readonly tag: number;
}

/** A value that stands behind an offset: a string, an identity, a message or a union. */
export interface Value<T, Input = T> {
  /** Writes it and everything it holds; returns its offset. */
  write(value: Input, writer: Writer): number;
  /** Reads what stands at `pos`, within `depth` tables; `undefined` where a union says that it has no member. */
  read(reader: Reader, pos: number, depth: number): T | undefined;
}

/** A message of a schema. `T` is what decoding gives, `Input` what may be encoded: fields with a default may be left out. */
export interface MessageType<T, Input = T> extends Value<T, Input> {
  /** Its name with its namespace, `billing.Charge`. */
  readonly typeName: string;
  /** Encodes it. Throws `EncodeError` where it breaks a rule of its schema, or a limit. */
  encode(value: Input): Bytes;
  /**
   * Decodes the message that `bytes` are; fields unknown here are ignored. Throws `DecodeError` where they are no such
   * message, or break one of its rules. Whatever the bytes, time and memory stay in proportion to their number.
   */
  decode(bytes: Bytes): T;
}

/** A message, from how it is written and read. */
export function message<T, Input>(typeName: string, value: Value<T, Input>): MessageType<T, Input> {
  return {
    typeName,
    write: value.write,
    read: value.read,
    encode: (input) => new Writer().message(value, input),
    decode: (bytes) => new Reader(bytes).message(value),
  };
}

/** A struct, from the layout of its fields. Structs are always written: absence is told by their table alone. */
export function struct<T>(
  size: number,
  align: number,
  put: (view: DataView, at: number, value: T) => void,
  get: (view: DataView, at: number) => T,
): Inline<T> {
  const none = get(new DataView(new ArrayBuffer(size)), 0);
  return { size, align, none, isElided: () => false, put, get };
}

function integer(
  bits: number,
  signed: boolean,
  put: (view: DataView, at: number, value: number) => void,
  get: (view: DataView, at: number) => number,
): Inline<number> {
  const least = signed ? -(2 ** (bits - 1)) : 0;
  const most = 2 ** (signed ? bits - 1 : bits) - 1;
  return {
    size: bits / 8,
    align: bits / 8,
    none: 0,
    isElided: (value) => value === 0,
    put(view, at, value) {
      if (!Number.isInteger(value) || value < least || value > most) {
        throw new EncodeError(`is ${String(value)}, and not a whole number in ${least}..=${most}`);
      }
      put(view, at, value);
    },
    get,
  };
}

function wide(
  least: bigint,
  most: bigint,
  put: (view: DataView, at: number, value: bigint) => void,
  get: (view: DataView, at: number) => bigint,
): Inline<bigint> {
  return {
    size: 8,
    align: 8,
    none: 0n,
    isElided: (value) => value === 0n,
    put(view, at, value) {
      if (typeof value !== "bigint" || value < least || value > most) {
        throw new EncodeError(`is ${String(value)}, and not a bigint in ${least}..=${most}`);
      }
      put(view, at, value);
    },
    get,
  };
}

function float(
  size: 4 | 8,
  put: (view: DataView, at: number, value: number) => void,
  get: (view: DataView, at: number) => number,
): Inline<number> {
  return {
    size,
    align: size,
    none: 0,
    // -0 equals 0 and is not the same.
    isElided: (value) => Object.is(size === 4 ? Math.fround(value) : value, 0),
    put(view, at, value) {
      if (typeof value !== "number") throw new EncodeError(`is ${String(value)}, and not a number`);
      put(view, at, value);
    },
    get,
  };
}

export const i8 = integer(8, true, (v, at, n) => v.setInt8(at, n), (v, at) => v.getInt8(at));
export const i16 = integer(16, true, (v, at, n) => v.setInt16(at, n, true), (v, at) => v.getInt16(at, true));
export const i32 = integer(32, true, (v, at, n) => v.setInt32(at, n, true), (v, at) => v.getInt32(at, true));
/** The number of an enum in one byte. */
export const enum8 = integer(8, false, (v, at, n) => v.setUint8(at, n), (v, at) => v.getUint8(at));
export const u8: Inline<number> = { ...enum8, terminated: true };
export const u16 = integer(16, false, (v, at, n) => v.setUint16(at, n, true), (v, at) => v.getUint16(at, true));
export const u32 = integer(32, false, (v, at, n) => v.setUint32(at, n, true), (v, at) => v.getUint32(at, true));
export const i64 = wide(
  -(2n ** 63n),
  2n ** 63n - 1n,
  (v, at, n) => v.setBigInt64(at, n, true),
  (v, at) => v.getBigInt64(at, true),
);
export const u64 = wide(0n, 2n ** 64n - 1n, (v, at, n) => v.setBigUint64(at, n, true), (v, at) => v.getBigUint64(at, true));
export const f32 = float(4, (v, at, n) => v.setFloat32(at, n, true), (v, at) => v.getFloat32(at, true));
export const f64 = float(8, (v, at, n) => v.setFloat64(at, n, true), (v, at) => v.getFloat64(at, true));

export const bool: Inline<boolean> = {
  size: 1,
  align: 1,
  none: false,
  isElided: (value) => value === false,
  put(view, at, value) {
    if (typeof value !== "boolean") throw new EncodeError(`is ${String(value)}, and not a boolean`);
    view.setUint8(at, value ? 1 : 0);
  },
  get: (view, at) => view.getUint8(at) !== 0,
};

const uuidText = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const nilUuid = "00000000-0000-0000-0000-000000000000";
const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** A UUID is always written, as every other inline value of more than one number is. */
export const uuid: Inline<Uuid> = {
  size: 16,
  align: 1,
  none: nilUuid,
  isElided: () => false,
  put(view, at, value) {
    if (typeof value !== "string" || !uuidText.test(value)) {
      throw new EncodeError(`is ${JSON.stringify(value)}, and not a UUID in its hyphenated form`);
    }
    const digits = value.replaceAll("-", "");
    for (let byte = 0; byte < 16; byte++) {
      view.setUint8(at + byte, Number.parseInt(digits.slice(2 * byte, 2 * byte + 2), 16));
    }
  },
  get(view, at) {
    let text = "";
    for (let byte = 0; byte < 16; byte++) {
      if (byte === 4 || byte === 6 || byte === 8 || byte === 10) text += "-";
      text += hex[view.getUint8(at + byte)] ?? "";
    }
    return text;
  },
};

const encoder = new TextEncoder();

/** The bytes of a text. Throws `EncodeError` where it holds half of a surrogate pair, which UTF-8 cannot say. */
export function utf8(text: string): Bytes {
  if (typeof text !== "string") throw new EncodeError(`is ${String(text)}, and not a string`);
  const bytes = encoder.encode(text);
  if (bytes.length !== text.length && /\p{Surrogate}/u.test(text)) {
    throw new EncodeError("holds half of a surrogate pair, which no UTF-8 has");
  }
  return bytes;
}

/** A string. */
export const string: Value<string> = {
  write: (value, writer) => writer.raw(utf8(value)),
  read: (reader, pos) => reader.string(pos),
};

/** Bytes. FlatBuffers has no vector of vectors: in a list or map each has its place as `boxed` tells. */
export const bytes: Value<Bytes> = {
  write: (value, writer) => writer.raw(value),
  read: (reader, pos) => reader.bytes(pos),
};

/** Bytes in a list: each in a table of its own. */
export const boxed: Value<Bytes> = {
  write(value, writer) {
    const offset = writer.bytes(value, "value");
    writer.table();
    writer.offset(0, offset);
    return writer.end();
  },
  read: (reader, pos, depth) => reader.table(pos, depth).bytes(0, "value"),
};

function identity(what: string): Value<string> {
  const problem = (text: string, length: number): string | undefined => {
    if (length < 1 || length > 255) return `is no ${what}: it has ${length} bytes; 1 to 255 are allowed`;
    return text.includes("\0") ? `is no ${what}: it contains a NUL` : undefined;
  };
  return {
    write(value, writer) {
      const bytes = utf8(value);
      const wrong = problem(value, bytes.length);
      if (wrong !== undefined) throw new EncodeError(wrong);
      return writer.raw(bytes);
    },
    read(reader, pos) {
      const value = reader.string(pos);
      const wrong = problem(value, encoder.encode(value).length);
      if (wrong !== undefined) throw new DecodeError(wrong);
      return value;
    },
  };
}

export const spotId = identity("Spot ID");
export const actorId = identity("Actor ID");
const meshName = identity("MeshName");

const nodeRid: Value<Bytes> = {
  write(value, writer) {
    if (!isRid(value)) throw new EncodeError(`is no RID: it has ${value.length} bytes; 1 to 255 are allowed`);
    return writer.raw(value);
  },
  read(reader, pos) {
    const value = reader.bytes(pos);
    if (!isRid(value)) throw new DecodeError(`is no RID: it has ${value.length} bytes; 1 to 255 are allowed`);
    return value;
  },
};

function isRid(bytes: Bytes): boolean {
  return bytes.length >= 1 && bytes.length <= 255;
}

const mostGeneration = 2n ** 63n - 1n;

function reference(id: Value<string>, idName: string): Value<ObjectRef> {
  const check = (generation: bigint) => generation >= 1n && generation <= mostGeneration;
  const problem = (generation: bigint) => `is no object generation: ${String(generation)} is not in 1..=${mostGeneration}`;
  return {
    write(value, writer) {
      if (!check(value.generation)) throw new EncodeError(problem(value.generation), "object_generation");
      const own = writer.value(value.id, idName, id);
      const mesh = writer.value(value.mesh, "mesh_name", meshName);
      const node = writer.value(value.node, "node_rid", nodeRid);
      writer.table();
      writer.inline(1, "object_generation", u64, value.generation);
      writer.offset(0, own);
      writer.offset(2, mesh);
      writer.offset(3, node);
      return writer.end();
    },
    read(reader, pos, depth) {
      const table = reader.table(pos, depth);
      const generation = table.inline(1, "object_generation", u64);
      if (!check(generation)) throw new DecodeError(problem(generation), "object_generation");
      return {
        id: table.required(0, idName, id),
        generation,
        mesh: table.required(2, "mesh_name", meshName),
        node: table.required(3, "node_rid", nodeRid),
      };
    },
  };
}

export const spotRef = reference(spotId, "spot_id");
export const actorRef = reference(actorId, "actor_id");
