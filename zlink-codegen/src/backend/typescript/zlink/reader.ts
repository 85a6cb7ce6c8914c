// FlatBuffers into values, in one pass that checks what it reads, where it reads it. Nothing is trusted: every offset,
// length and count is proven against the bytes before it is used, and every byte that is visited is charged.
// It must not know what the bytes are for.

import type { Bytes, Inline, Value } from "./codec.js";
import { DecodeError, inside } from "./errors.js";
import { MAX_DEPTH, MAX_TABLES } from "./writer.js";

/** How often a message's bytes may be visited, on average. What is written here visits each at most once. */
const VISITS_PER_BYTE = 4;
/** What may be visited beyond that, in bytes. */
const VISITS_MORE = 1024;
/** Texts of up to this many bytes are looked at for being ASCII, which is faster than a decoder. */
const SHORT_TEXT = 24;

const outOfBounds = "lies outside the message";
// Without `ignoreBOM`, a text would lose a byte order mark that it begins with.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** One message that is being read. */
export class Reader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  /** Bytes that may still be visited. */
  #budget: number;
  /** Tables that may still be visited. */
  #tables = MAX_TABLES;

  constructor(bytes: Uint8Array) {
    // A Buffer's methods differ: its slices would be views of the whole.
    this.#bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#budget = bytes.byteLength * VISITS_PER_BYTE + VISITS_MORE;
  }

  /** Reads the message that the bytes are. */
  message<T>(type: Value<T, never>): T {
    const value = type.read(this, this.u32(0), 0);
    if (value === undefined) throw new DecodeError("is a union without its member");
    return value;
  }

  /** The number at `pos`. */
  u32(pos: number): number {
    if (pos + 4 > this.#bytes.length) throw new DecodeError(outOfBounds);
    return this.#view.getUint32(pos, true);
  }

  get view(): DataView {
    return this.#view;
  }

  #charge(bytes: number): void {
    this.#budget -= bytes;
    if (this.#budget < 0) throw new DecodeError(`uses its bytes more than ${VISITS_PER_BYTE} times over`);
  }

  /** Checks the vector at `pos` and returns its number of items. */
  vector(pos: number, itemSize: number, max: number | undefined): number {
    const count = this.u32(pos);
    if (max !== undefined && count > max) throw new DecodeError(`has ${count}, more than its maximum of ${max}`);
    const size = count * itemSize;
    if (pos + 4 + size > this.#bytes.length) throw new DecodeError(outOfBounds);
    this.#charge(size + 4);
    return count;
  }

  /** The string at `pos`. */
  string(pos: number, max?: number): string {
    const count = this.vector(pos, 1, max);
    const from = pos + 4;
    if (count <= SHORT_TEXT) {
      let text = "";
      let at = from;
      for (; at < from + count; at++) {
        const byte = this.#bytes[at] ?? 0x80;
        if (byte >= 0x80) break;
        text += String.fromCharCode(byte);
      }
      if (at === from + count) return text;
    }
    try {
      return decoder.decode(this.#bytes.subarray(from, from + count));
    } catch {
      throw new DecodeError("is not UTF-8");
    }
  }

  /** A copy of the bytes at `pos`. */
  bytes(pos: number, max?: number): Bytes {
    const count = this.vector(pos, 1, max);
    return this.#bytes.slice(pos + 4, pos + 4 + count);
  }

  /** The table at `pos`, which stands within `depth` others. */
  table(pos: number, depth: number): Table {
    if (depth >= MAX_DEPTH) throw new DecodeError(`is nested more than ${MAX_DEPTH} deep`);
    if (this.#tables === 0) throw new DecodeError(`has more than ${MAX_TABLES} tables`);
    this.#tables -= 1;
    this.u32(pos);
    const vtable = pos - this.#view.getInt32(pos, true);
    if (vtable < 0 || vtable + 4 > this.#bytes.length) throw damaged();
    const size = this.#view.getUint16(vtable, true);
    const inline = this.#view.getUint16(vtable + 2, true);
    const fits = vtable + size <= this.#bytes.length && pos + inline <= this.#bytes.length;
    if (!fits || size < 4 || inline < 4) throw damaged();
    this.#charge(inline);
    return new Table(this, pos, depth + 1, vtable, size, inline);
  }
}

function damaged(): DecodeError {
  return new DecodeError("has a damaged vtable");
}

/** A table that is being read. */
export class Table {
  readonly #reader: Reader;
  readonly #pos: number;
  readonly #depth: number;
  readonly #vtable: number;
  readonly #vtableSize: number;
  readonly #inlineSize: number;

  constructor(reader: Reader, pos: number, depth: number, vtable: number, vtableSize: number, inlineSize: number) {
    this.#reader = reader;
    this.#pos = pos;
    this.#depth = depth;
    this.#vtable = vtable;
    this.#vtableSize = vtableSize;
    this.#inlineSize = inlineSize;
  }

  /** Where a field of `size` bytes stands in the message; 0 where it is absent. */
  #slot(id: number, name: string, size: number, required: boolean): number {
    const slot = 4 + 2 * id;
    const at = slot + 2 <= this.#vtableSize ? this.#reader.view.getUint16(this.#vtable + slot, true) : 0;
    if (at === 0) {
      if (required) throw new DecodeError("is required and absent", name);
      return 0;
    }
    // The first four bytes are the way to the vtable.
    if (at < 4 || at + size > this.#inlineSize) throw new DecodeError(outOfBounds, name);
    return this.#pos + at;
  }

  /** The position that a field's offset leads to; 0 where it is absent. */
  #target(id: number, name: string, required: boolean): number {
    const at = this.#slot(id, name, 4, required);
    return at === 0 ? 0 : at + this.#reader.view.getUint32(at, true);
  }

  /** A scalar or enum that may be absent. */
  optional<T>(id: number, name: string, type: Inline<T>): T | undefined {
    const at = this.#slot(id, name, type.size, false);
    return at === 0 ? undefined : type.get(this.#reader.view, at);
  }

  /** A scalar, enum or struct; its default where it is absent, and not required. */
  inline<T>(id: number, name: string, type: Inline<T>, required = false): T {
    const at = this.#slot(id, name, type.size, required);
    return at === 0 ? type.none : type.get(this.#reader.view, at);
  }

  /** A string; empty where it is absent, and not required. */
  string(id: number, name: string, required = false, max?: number): string {
    const pos = this.#target(id, name, required);
    if (pos === 0) return "";
    try {
      return this.#reader.string(pos, max);
    } catch (error) {
      throw inside(error, name);
    }
  }

  /** Bytes; empty where they are absent, and not required. */
  bytes(id: number, name: string, required = false, max?: number): Bytes {
    const pos = this.#target(id, name, required);
    if (pos === 0) return new Uint8Array();
    try {
      return this.#reader.bytes(pos, max);
    } catch (error) {
      throw inside(error, name);
    }
  }

  /** A list of scalars, enums or structs; empty where it is absent, and not required. */
  inlines<T>(id: number, name: string, type: Inline<T>, required = false, max?: number): readonly T[] {
    const pos = this.#target(id, name, required);
    if (pos === 0) return [];
    try {
      const count = this.#reader.vector(pos, type.size, max);
      const items: T[] = [];
      for (let index = 0; index < count; index++) {
        items.push(type.get(this.#reader.view, pos + 4 + index * type.size));
      }
      return items;
    } catch (error) {
      throw inside(error, name);
    }
  }

  /** A list of anything else; empty where it is absent, and not required. */
  list<T>(id: number, name: string, type: Value<T, never>, required = false, max?: number): readonly T[] {
    const items: T[] = [];
    this.#each(id, name, required, max, (pos) => {
      items.push(present(type.read(this.#reader, pos, this.#depth)));
    });
    return items;
  }

  /** A map of scalars, enums or structs; empty where it is absent, and not required. */
  inlineMap<T>(id: number, name: string, type: Inline<T>, required = false, max?: number): ReadonlyMap<string, T> {
    return this.#entries(id, name, required, max, (entry) => entry.inline(1, "value", type));
  }

  /** A map of anything else; empty where it is absent, and not required. */
  map<T>(id: number, name: string, type: Value<T, never>, required = false, max?: number): ReadonlyMap<string, T> {
    return this.#entries(id, name, required, max, (entry) => entry.required(1, "value", type));
  }

  #entries<T>(
    id: number,
    name: string,
    required: boolean,
    max: number | undefined,
    read: (entry: Table) => T,
  ): ReadonlyMap<string, T> {
    const map = new Map<string, T>();
    this.#each(id, name, required, max, (pos) => {
      const entry = this.#reader.table(pos, this.#depth);
      const key = entry.string(0, "key", true);
      const value = read(entry);
      if (map.has(key)) throw new DecodeError(`has the key ${JSON.stringify(key)} twice`);
      map.set(key, value);
    });
    return map;
  }

  /** Leads to each item of a vector of offsets. */
  #each(id: number, name: string, required: boolean, max: number | undefined, visit: (pos: number) => void): void {
    const pos = this.#target(id, name, required);
    if (pos === 0) return;
    let index: number | undefined;
    try {
      const count = this.#reader.vector(pos, 4, max);
      for (index = 0; index < count; index++) {
        const at = pos + 4 + 4 * index;
        visit(at + this.#reader.view.getUint32(at, true));
      }
    } catch (error) {
      throw inside(index === undefined ? error : inside(error, index), name);
    }
  }

  /** A message, union, identity or reference that may be absent. */
  value<T>(id: number, name: string, type: Value<T, never>): T | undefined {
    const pos = this.#target(id, name, false);
    if (pos === 0) return undefined;
    try {
      return type.read(this.#reader, pos, this.#depth);
    } catch (error) {
      throw inside(error, name);
    }
  }

  /** A message, union, identity or reference that must be there. */
  required<T>(id: number, name: string, type: Value<T, never>): T {
    const value = this.value(id, name, type);
    if (value === undefined) throw new DecodeError("is required and absent", name);
    return value;
  }

  /** The member of a union, where this is the table around one. */
  member<T>(type: Value<T, never>): T {
    const pos = this.#target(1, "value", false);
    if (pos === 0) throw new DecodeError("is a union without its member");
    return present(type.read(this.#reader, pos, this.#depth));
  }
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new DecodeError("is a union without its member");
  return value;
}
