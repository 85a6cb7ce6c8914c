// The metadata snapshot: a small set of text keys and values that travels beside a payload. It owns the layout: a zero
// byte, the number of entries, then per entry the key's length in one byte, the value's in two, key and value; entries
// by rising key. It must not know which calls carry it.

import { Buffer } from "node:buffer";

import type { Bytes } from "./codec.js";
import { bool, f32, f64, i16, i32, i64, i8, u16, u32, u64, u8, uuid, utf8 } from "./codec.js";
import type { Inline } from "./codec.js";
import { ArgumentError, EncodeError } from "./errors.js";

/** Encoded metadata of one call, in bytes: 2 + Σ(3 + key + value). */
export const METADATA_BYTES = 1024;
/** Entries of one snapshot. */
export const METADATA_ENTRIES = 255;

/** A key that a schema declares, with the type that its value's text stands for. */
export interface MetadataKey<T> {
  /** Its name, as it travels. */
  readonly key: string;
  /** The text of a value, the same in every language. Throws `EncodeError` where it is no such value. */
  toText(value: T): string;
}

/** Metadata to send with a call. Later changes do not reach calls that were made with it before. */
export class Metadata {
  readonly #entries = new Map<string, { readonly key: Bytes; readonly value: Bytes }>();
  #size = 2;

  /**
   * Sets `key` to `value`, in place of what it had. Throws `ArgumentError` where the key is empty or longer than 255
   * bytes, where either holds a NUL, or where the whole would need more than 1024 bytes: 2, and 3 + key + value for each
   * entry. Nothing is changed then.
   */
  set(key: string, value: string): this;
  set<T>(key: MetadataKey<T>, value: T): this;
  set(key: string | MetadataKey<unknown>, value: unknown): this {
    const name = typeof key === "string" ? key : key.key;
    let entry: { readonly key: Bytes; readonly value: Bytes };
    try {
      const text = typeof key === "string" ? value : key.toText(value);
      if (typeof text !== "string") throw new EncodeError(`is ${String(text)}, and not a string`);
      entry = { key: utf8(name), value: utf8(text) };
    } catch (error) {
      if (!(error instanceof EncodeError)) throw error;
      throw refused(`the key or value of ${JSON.stringify(name)} ${error.problem}`);
    }
    if (entry.key.length < 1 || entry.key.length > 255) {
      throw refused(`a key has ${entry.key.length} bytes; it needs 1 to 255`);
    }
    if (entry.key.includes(0) || entry.value.includes(0)) {
      throw refused(`the key or value of ${JSON.stringify(name)} contains a NUL character; remove it`);
    }
    const before = this.#entries.get(name);
    const size = this.#size + sizeOf(entry) - (before === undefined ? 0 : sizeOf(before));
    const count = this.#entries.size + (before === undefined ? 1 : 0);
    if (size > METADATA_BYTES || count > METADATA_ENTRIES) {
      throw refused(
        `with ${JSON.stringify(name)} it needs ${size} bytes in ${count} entries; at most ${METADATA_BYTES} bytes in ` +
          `${METADATA_ENTRIES} entries are allowed`,
      );
    }
    this.#entries.set(name, entry);
    this.#size = size;
    return this;
  }

  /** The text of `key`. */
  get(key: string): string | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined ? undefined : Buffer.from(entry.value).toString();
  }

  /** What travels; nothing where there are no entries. */
  encode(): Bytes {
    if (this.#entries.size === 0) return new Uint8Array();
    const out = Buffer.alloc(this.#size);
    out.writeUInt8(this.#entries.size, 1);
    let at = 2;
    for (const { key, value } of [...this.#entries.values()].sort((a, b) => Buffer.compare(a.key, b.key))) {
      at = out.writeUInt8(key.length, at);
      at = out.writeUInt16LE(value.length, at);
      out.set(key, at);
      out.set(value, at + key.length);
      at += key.length + value.length;
    }
    return out;
  }
}

function sizeOf(entry: { readonly key: Bytes; readonly value: Bytes }): number {
  return 3 + entry.key.length + entry.value.length;
}

function refused(problem: string): ArgumentError {
  return new ArgumentError("metadata", problem);
}

/** A key whose values are text as they are: strings and identities. */
export function textKey(key: string): MetadataKey<string> {
  return { key, toText: (value) => value };
}

/** A key whose values are checked by what they would be inline, and then written by `text`. */
function typed<T>(type: Inline<T>, text: (value: T) => string): (key: string) => MetadataKey<T> {
  const scratch = new DataView(new ArrayBuffer(16));
  return (key) => ({
    key,
    toText(value) {
      type.put(scratch, 0, value);
      return text(value);
    },
  });
}

export const boolKey = typed(bool, String);
export const i8Key = typed(i8, String);
export const i16Key = typed(i16, String);
export const i32Key = typed(i32, String);
export const i64Key = typed(i64, String);
export const u8Key = typed(u8, String);
export const u16Key = typed(u16, String);
export const u32Key = typed(u32, String);
export const u64Key = typed(u64, String);
export const uuidKey = typed(uuid, (value) => value.toLowerCase());
export const f64Key = typed(f64, decimal);
export const f32Key = typed(f32, (value) => {
  // The shortest text that reads back as the same 32 bits; nine digits always do.
  const single = Math.fround(value);
  for (let digits = 1; digits < 9; digits++) {
    const text = single.toPrecision(digits);
    if (Math.fround(Number(text)) === single) return decimal(Number(text));
  }
  return decimal(Number(single.toPrecision(9)));
});

/** A number in decimal without an exponent, the shortest that reads back the same. */
function decimal(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value < 0 ? "-inf" : "inf";
  const text = Object.is(value, -0) ? "-0" : String(value);
  const parts = /^(-?)(\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(text);
  if (parts === null) return text;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = parts;
  const point = whole.length + Number(exponent);
  const digits = whole + fraction;
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  return point >= digits.length ? sign + digits.padEnd(point, "0") : `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}
