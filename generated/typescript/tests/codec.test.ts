// Codecs against the golden vectors, the samples of the other languages, and bytes that are damaged.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as billing from "../src/billing.js";
import * as contract from "../src/contract.js";
import * as common from "../src/test_common.js";
import * as every from "../src/test_every_type.js";
import { DecodeError, EncodeError, MAX_DEPTH, timestamp, toDate } from "../src/zlink/index.js";
import { least, sample } from "./sample.js";
import { repository } from "./kit.js";

function hex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "hex"));
}

function refuses(bytes: Uint8Array, field: string, problem: RegExp): void {
  assert.throws(
    () => every.All.decode(bytes),
    (error) => error instanceof DecodeError && error.field === field && problem.test(error.problem),
  );
}

test("a value of every type comes back as it was", () => {
  const value = sample();
  const bytes = every.All.encode(value);
  const read = every.All.decode(bytes);
  assert.deepEqual(read, value);
  assert.deepEqual(every.All.encode(read), bytes);
});

test("what is left out reads as its default", () => {
  const decoded = every.All.decode(
    every.All.encode({
      someBytes: new Uint8Array(),
      requiredString: "",
      requiredMessage: {},
      requiredUnion: { kind: "Circle", value: { centre: { x: 0, y: 0 } } },
    }),
  );
  assert.deepEqual(decoded, least());
  assert.equal(decoded.aMessage, undefined);
  assert.equal(decoded.maybeNumber, undefined);
});

test("an optional zero is not nothing, and -0 is not 0", () => {
  const read = every.All.decode(every.All.encode({ ...least(), maybeNumber: 0n, maybeBool: false, anF64: -0 }));
  assert.equal(read.maybeNumber, 0n);
  assert.equal(read.maybeBool, false);
  assert.ok(Object.is(read.anF64, -0));
});

test("the greatest and least numbers pass, and one beyond is refused with its field", () => {
  const integers: readonly [keyof every.AllInput, number, number][] = [
    ["anI8", -128, 127],
    ["anI16", -32768, 32767],
    ["anI32", -(2 ** 31), 2 ** 31 - 1],
    ["aU8", 0, 255],
    ["aU16", 0, 65535],
    ["aU32", 0, 2 ** 32 - 1],
  ];
  for (const [field, low, high] of integers) {
    for (const value of [low, high]) {
      assert.equal(every.All.decode(every.All.encode({ ...least(), [field]: value }))[field], value);
    }
    for (const value of [low - 1, high + 1, 0.5, Number.NaN, "1", null]) {
      const wrong = { ...least(), [field]: value } as unknown as every.AllInput;
      assert.throws(() => every.All.encode(wrong), EncodeError, `${field} ${String(value)}`);
    }
  }
  const wide: readonly [keyof every.AllInput, bigint, bigint][] = [
    ["anI64", -(2n ** 63n), 2n ** 63n - 1n],
    ["aU64", 0n, 2n ** 64n - 1n],
    ["aTimestamp", -(2n ** 63n), 2n ** 63n - 1n],
  ];
  for (const [field, low, high] of wide) {
    for (const value of [low, high]) {
      assert.equal(every.All.decode(every.All.encode({ ...least(), [field]: value }))[field], value);
    }
    for (const value of [low - 1n, high + 1n, 1]) {
      const wrong = { ...least(), [field]: value } as unknown as every.AllInput;
      assert.throws(() => every.All.encode(wrong), EncodeError, `${field} ${String(value)}`);
    }
  }
});

test("a maximum passes, and one more is refused on both sides", () => {
  const at = { ...least(), aString: "ü".repeat(32), someBytes: new Uint8Array(1024), numberList: Array(16).fill(1) };
  const read = every.All.decode(every.All.encode(at));
  assert.equal(read.aString.length, 32);
  for (const [field, value] of [
    ["aString", "ü".repeat(32) + "."],
    ["someBytes", new Uint8Array(1025)],
    ["numberList", Array(17).fill(1)],
    ["numberMap", new Map(Array.from({ length: 9 }, (_, n) => [`${n}`, n] as const))],
  ] as const) {
    assert.throws(() => every.All.encode({ ...least(), [field]: value }), /more than its maximum of/);
  }
  // The bytes of the longest legal string, with a length that says one more.
  const bytes = every.All.encode({ ...least(), aString: "x".repeat(64) });
  const place = Buffer.from(bytes).indexOf("x".repeat(64)) - 4;
  bytes[place] = 65;
  refuses(bytes, "a_string", /has 65, more than its maximum of 64/);
});

test("texts that UTF-8 cannot say, and bytes that are none, are refused", () => {
  assert.throws(
    () => every.All.encode({ ...least(), stringList: ["fine", "half \ud800 a pair"] }),
    (error) => error instanceof EncodeError && error.field === "string_list[1]",
  );
  const bytes = every.All.encode({ ...least(), stringList: ["fine", "damaged"] });
  bytes[Buffer.from(bytes).indexOf("damaged")] = 0xff;
  refuses(bytes, "string_list[1]", /is not UTF-8/);
  const marked = { ...least(), aString: "\ufeffa text that begins with a byte order mark, and is long" };
  assert.equal(every.All.decode(every.All.encode(marked)).aString, marked.aString);
});

test("identities have 1 to 255 bytes without NUL", () => {
  const longest = "ü".repeat(127) + ".";
  assert.equal(every.All.decode(every.All.encode({ ...least(), aSpotId: longest })).aSpotId, longest);
  for (const wrong of ["", longest + ".", "a\0b"]) {
    assert.throws(() => every.All.encode({ ...least(), spotIdList: ["a", wrong] }), /spot_id_list\[1\] is no Spot ID/);
  }
  const reference = { id: "a", generation: 1n, mesh: "m", node: new Uint8Array([1]) };
  for (const wrong of [{ generation: 0n }, { generation: 2n ** 63n }, { node: new Uint8Array(256) }, { mesh: "" }]) {
    assert.throws(() => every.All.encode({ ...least(), aSpotRef: { ...reference, ...wrong } }), EncodeError);
  }
});

test("what must be there is missed by name", () => {
  const { requiredMessage, ...rest } = least();
  assert.ok(requiredMessage);
  assert.throws(() => every.All.encode(rest as unknown as every.AllInput), /required_message is required and absent/);
  assert.throws(() => contract.Strict.decode(contract.Note.encode({ text: "x" })), /must is required and absent/);
});

test("numbers of enums and tags of unions that are unknown are kept; their members cannot be written again", () => {
  const newer = { ...least(), anEnum: 9, enumList: [9, every.Kind.Weapon] };
  assert.deepEqual(every.All.decode(every.All.encode(newer)), newer);
  const bytes = every.All.encode({ ...least(), unionList: [{ kind: "Small", value: { text: "x" } }] });
  // The table around the union ends with its tag: the only byte 1 behind an offset of 8.
  const tag = bytes.findIndex((_, at) => {
    const copy = bytes.slice();
    copy[at] = 9;
    try {
      const [member] = every.All.decode(copy).unionList;
      return member?.kind === "unknown" && member.tag === 9;
    } catch {
      return false;
    }
  });
  assert.ok(tag > 0);
  bytes[tag] = 9;
  const read = every.All.decode(bytes);
  assert.deepEqual(read.unionList, [{ kind: "unknown", tag: 9 }]);
  assert.throws(() => every.All.encode(read), /union_list\[0\] is a union member with the unknown tag 9/);
});

test("a newer program's fields are ignored, and an older program's absence is a default", () => {
  const note = contract.Note.decode(contract.Strict.encode({ text: "t", number: 7n, must: "new" }));
  assert.deepEqual(note, { text: "t", number: 7n, body: new Uint8Array() });
  assert.deepEqual(common.Money.decode(contract.Note.encode({})), { cents: 0n, currency: common.Currency.Unspecified });
});

test("tables nest as deep as the limit, and not one deeper", () => {
  const nested = (depth: number): every.AllInput =>
    depth === 0 ? least() : { ...least(), messageList: [nested(depth - 1)] };
  // The innermost holds a message and a union with a member of its own.
  assert.ok(every.All.decode(every.All.encode(nested(MAX_DEPTH - 3))));
  assert.throws(() => every.All.encode(nested(MAX_DEPTH - 2)), /is nested more than 64 deep/);
});

test("whatever the bytes, decoding gives a value or a DecodeError", () => {
  const whole = every.All.encode(sample());
  let seed = 42;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  for (let cut = 0; cut < whole.length; cut += 7) {
    attempt(whole.subarray(0, cut));
  }
  for (let round = 0; round < 3000; round++) {
    const bytes = whole.slice();
    for (let change = 0; change <= random(8); change++) bytes[random(bytes.length)] = random(256);
    attempt(bytes);
  }
  function attempt(bytes: Uint8Array): void {
    try {
      every.All.decode(bytes);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
    }
  }
});

test("a few bytes that are used again and again are refused", () => {
  // A list whose thousand items are all the same long text.
  const bytes = Buffer.from(every.All.encode({ ...least(), stringList: ["x".repeat(4096), ...Array<string>(999).fill("")] }));
  const text = bytes.indexOf("x".repeat(4096)) - 4;
  for (let at = 0; at + 4 <= text; at += 4) {
    if (bytes.readUInt32LE(at) !== 1000) continue;
    for (let item = 0; item < 1000; item++) bytes.writeUInt32LE(text - (at + 4 + 4 * item), at + 4 + 4 * item);
    break;
  }
  refuses(bytes, "string_list[15]", /uses its bytes more than 4 times over/);
});

test("damaged frames of bytes are refused", () => {
  for (const [bytes, problem] of [
    ["", /lies outside/],
    ["ffffff7f", /lies outside/],
    ["0400000004000000", /damaged vtable/],
    ["08000000 0400 0400 04000000".replaceAll(" ", ""), /is required and absent/],
  ] as const) {
    assert.throws(
      () => billing.Charge.decode(hex(bytes)),
      (error) => error instanceof DecodeError && problem.test(error.problem),
      bytes,
    );
  }
});

test("equal values are equal bytes in Rust and here", () => {
  const vectors = JSON.parse(
    readFileSync(repository("generated/rust/tests/interop/sample.hex.json"), "utf8"),
  ) as Record<string, string>;
  assert.equal(Buffer.from(every.All.encode(sample())).toString("hex"), vectors["all"]);
  assert.equal(Buffer.from(every.All.encode(least())).toString("hex"), vectors["least"]);
});

test("times are microseconds, cut off towards the past", () => {
  const date = new Date("1969-12-31T23:59:59.999Z");
  assert.equal(timestamp(date), -1000n);
  assert.deepEqual(toDate(-1000n), date);
  assert.deepEqual(toDate(-1n), date);
  assert.deepEqual(toDate(1n), new Date(0));
});
