// Values into FlatBuffers, from the back of a buffer to its front: children first, then the table that names them.
// It lays bytes out exactly as the official Rust builder does, so that equal values are equal bytes in every language.
// It must not know what the bytes are for.

import { Buffer } from "node:buffer";

import type { Bytes, Inline, StringMap, UnknownMember, Value } from "./codec.js";
import { u8, utf8 } from "./codec.js";
import { EncodeError, inside } from "./errors.js";

/** Tables within tables, in either direction: messages, unions, map entries. */
export const MAX_DEPTH = 64;
/** Tables of one message, in either direction. */
export const MAX_TABLES = 2 ** 20;
/** Bytes of any payload and any complete message. */
export const MAX_BYTES = 2 ** 31 - 1;

/** One message under construction. Offsets count from the end of the buffer; 0 is none. */
export class Writer {
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  /** Where what is written begins. */
  #head = 256;
  #minAlign = 1;
  #depth = 0;
  #tables = 0;
  /** Of the table under construction: where it began, and where each of its fields stands. */
  #tableStart = 0;
  #slots: number[] = [];
  #places: number[] = [];
  /** Vtables by their content. */
  readonly #vtables = new Map<string, number>();

  /** Writes `root` and everything in it. */
  message<Input>(root: Value<unknown, Input>, value: Input): Bytes {
    const offset = this.#nested(value, root);
    this.#align(4, this.#minAlign);
    this.#offset(offset);
    if (this.#used > MAX_BYTES) throw new EncodeError(`is larger than ${MAX_BYTES} bytes`);
    return this.#bytes.slice(this.#head);
  }

  get #used(): number {
    return this.#bytes.length - this.#head;
  }

  #room(more: number): void {
    if (this.#head >= more) return;
    const used = this.#used;
    if (used + more > MAX_BYTES) throw new EncodeError(`is larger than ${MAX_BYTES} bytes`);
    let length = this.#bytes.length;
    while (length - used < more) length *= 2;
    const grown = new Uint8Array(length);
    grown.set(this.#bytes.subarray(this.#head), length - used);
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
    this.#head = length - used;
  }

  /** Leaves what it takes that, after `length` more bytes, the position is a multiple of `align`. */
  #align(length: number, align: number): void {
    if (align > this.#minAlign) this.#minAlign = align;
    const padding = -(this.#used + length) & (align - 1);
    this.#room(padding + length);
    this.#head -= padding;
  }

  #u32(value: number): void {
    this.#align(4, 4);
    this.#head -= 4;
    this.#view.setUint32(this.#head, value, true);
  }

  /** The way from here to what was written at `offset`. */
  #offset(offset: number): void {
    this.#align(4, 4);
    this.#head -= 4;
    this.#view.setUint32(this.#head, this.#used - offset, true);
  }

  #nested<Input>(value: Input, type: Value<unknown, Input>): number {
    // One more than tables may be deep, since leaves stand one below the innermost table.
    if (this.#depth > MAX_DEPTH) throw new EncodeError(`is nested more than ${MAX_DEPTH} deep`);
    this.#depth += 1;
    const offset = type.write(value, this);
    this.#depth -= 1;
    return offset;
  }

  /** A string or bytes that stand in a list or a map. */
  raw(value: Bytes): number {
    if (!(value instanceof Uint8Array)) throw new EncodeError(`is ${String(value)}, and not a Uint8Array`);
    this.#align(value.length + 1, 4);
    this.#head -= value.length + 1;
    this.#bytes.set(value, this.#head);
    this.#u32(value.length);
    return this.#used;
  }

  /** A string field. */
  string(value: string | undefined, name: string, required = false, max = MAX_BYTES): number {
    if (value === undefined) return this.#missing(name, required);
    if (value === "" && !required) return 0;
    try {
      const bytes = utf8(value);
      checkLength(bytes.length, max);
      return this.raw(bytes);
    } catch (error) {
      throw inside(error, name);
    }
  }

  /** A bytes field. */
  bytes(value: Bytes | undefined, name: string, required = false, max = MAX_BYTES): number {
    if (value === undefined) return this.#missing(name, required);
    if (value.length === 0 && !required) return 0;
    try {
      checkLength(value.length, max);
      return this.raw(value);
    } catch (error) {
      throw inside(error, name);
    }
  }

  /** A list of scalars, enums or structs. */
  inlines<T>(items: readonly T[] | undefined, name: string, type: Inline<T>, required = false, max = MAX_BYTES): number {
    if (items === undefined) return this.#missing(name, required);
    if (items.length === 0 && !required) return 0;
    try {
      checkLength(items.length, max);
      const size = items.length * type.size + (type.terminated === true ? 1 : 0);
      this.#align(size, Math.max(type.align, 4));
      this.#head -= size;
      const head = this.#head;
      items.forEach((item, index) => {
        try {
          type.put(this.#view, head + index * type.size, item);
        } catch (error) {
          throw inside(error, index);
        }
      });
      this.#u32(items.length);
      return this.#used;
    } catch (error) {
      throw inside(error, name);
    }
  }

  /** A list of anything else. */
  list<Input>(
    items: readonly Input[] | undefined,
    name: string,
    type: Value<unknown, Input>,
    required = false,
    max = MAX_BYTES,
  ): number {
    if (items === undefined) return this.#missing(name, required);
    return this.#vector(items, name, type, required, max);
  }

  /** A map of scalars, enums or structs. */
  inlineMap<T>(
    map: StringMap<T> | undefined,
    name: string,
    type: Inline<T>,
    required = false,
    max = MAX_BYTES,
  ): number {
    if (map === undefined) return this.#missing(name, required);
    const entry: Value<unknown, readonly [string, T]> = {
      write(pair, writer) {
        const key = writer.string(pair[0], "key", true);
        writer.table();
        writer.offset(0, key);
        writer.inline(1, "value", type, pair[1]);
        return writer.end();
      },
      read: () => undefined,
    };
    return this.#vector(sorted(map), name, entry, required, max);
  }

  /** A map of anything else. */
  map<Input>(
    map: StringMap<Input> | undefined,
    name: string,
    type: Value<unknown, Input>,
    required = false,
    max = MAX_BYTES,
  ): number {
    if (map === undefined) return this.#missing(name, required);
    const entry: Value<unknown, readonly [string, Input]> = {
      write(pair, writer) {
        const key = writer.string(pair[0], "key", true);
        const value = writer.value(pair[1], "value", type, true);
        writer.table();
        writer.offset(0, key);
        writer.offset(1, value);
        return writer.end();
      },
      read: () => undefined,
    };
    return this.#vector(sorted(map), name, entry, required, max);
  }

  #vector<Input>(
    items: readonly Input[],
    name: string,
    type: Value<unknown, Input>,
    required: boolean,
    max: number,
  ): number {
    if (items.length === 0 && !required) return 0;
    try {
      checkLength(items.length, max);
      const offsets = items.map((item, index) => {
        try {
          return this.#nested(item, type);
        } catch (error) {
          throw inside(error, index);
        }
      });
      this.#align(4 * offsets.length, 4);
      for (const offset of offsets.reverse()) this.#offset(offset);
      this.#u32(offsets.length);
      return this.#used;
    } catch (error) {
      throw inside(error, name);
    }
  }

  /** A message, union, identity or reference. */
  value<Input>(value: Input | undefined, name: string, type: Value<unknown, Input>, required = false): number {
    if (value === undefined) return this.#missing(name, required);
    try {
      return this.#nested(value, type);
    } catch (error) {
      throw inside(error, name);
    }
  }

  /** A union: the table around it, and its member. */
  union<Input>(tag: number, member: Input, type: Value<unknown, Input>): number {
    const offset = this.#nested(member, type);
    this.table();
    this.offset(1, offset);
    this.inline(0, "tag", u8, tag);
    return this.end();
  }

  /** A union whose member is not known here. */
  unknownUnion({ tag }: UnknownMember): never {
    throw new EncodeError(`is a union member with the unknown tag ${String(tag)}, which cannot be encoded again`);
  }

  /** A required field that is left out stands for its default, except where it has none. */
  #missing(name: string, required: boolean): number {
    if (required) throw new EncodeError("is required and absent", name);
    return 0;
  }

  /** Begins a table; everything it names has been written. */
  table(): void {
    if (this.#depth > MAX_DEPTH) throw new EncodeError(`is nested more than ${MAX_DEPTH} deep`);
    this.#tables += 1;
    if (this.#tables > MAX_TABLES) throw new EncodeError(`has more than ${MAX_TABLES} tables`);
    this.#tableStart = this.#used;
  }

  /** Puts what was written at `offset`, if anything, into the field `id`. */
  offset(id: number, offset: number): void {
    if (offset === 0) return;
    this.#offset(offset);
    this.#place(id);
  }

  /** Puts a scalar, enum or struct into the field `id`, unless absence means the same. */
  inline<T>(id: number, name: string, type: Inline<T>, value: T | undefined): void {
    const given = value === undefined ? type.none : value;
    if (!type.isElided(given)) this.#inline(id, name, type, given);
  }

  /** Puts a scalar or enum that is there into the field `id`. */
  optional<T>(id: number, name: string, type: Inline<T>, value: T | undefined): void {
    if (value !== undefined) this.#inline(id, name, type, value);
  }

  #inline<T>(id: number, name: string, type: Inline<T>, value: T): void {
    this.#align(type.size, type.align);
    this.#head -= type.size;
    try {
      type.put(this.#view, this.#head, value);
    } catch (error) {
      throw inside(error, name);
    }
    this.#place(id);
  }

  #place(id: number): void {
    this.#slots.push(id);
    this.#places.push(this.#used);
  }

  /** Ends the table. */
  end(): number {
    this.#u32(0);
    const table = this.#used;
    const last = this.#slots.reduce((most, id) => Math.max(most, id), -1);
    const vtable = new Uint16Array(3 + last).fill(0);
    vtable[0] = 2 * vtable.length;
    vtable[1] = table - this.#tableStart;
    this.#slots.forEach((id, index) => {
      vtable[2 + id] = table - (this.#places[index] ?? 0);
    });
    this.#slots = [];
    this.#places = [];
    const content = String.fromCharCode(...vtable);
    let at = this.#vtables.get(content);
    if (at === undefined) {
      this.#room(2 * vtable.length);
      this.#head -= 2 * vtable.length;
      vtable.forEach((number, index) => this.#view.setUint16(this.#head + 2 * index, number, true));
      at = this.#used;
      this.#vtables.set(content, at);
    }
    this.#view.setInt32(this.#bytes.length - table, at - table, true);
    return table;
  }
}

function checkLength(actual: number, max: number): void {
  if (actual > max) throw new EncodeError(`has ${actual}, more than its maximum of ${max}`);
}

/** The entries by rising key, as UTF-8 orders them: by code point. */
function sorted<V>(map: StringMap<V>): readonly (readonly [string, V])[] {
  if (!(map instanceof Map)) throw new EncodeError(`is ${String(map)}, and not a Map`);
  return [...map].sort(([a], [b]) => (a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b))));
}

