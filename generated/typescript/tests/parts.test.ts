// The parts that know no socket: records against the golden vectors, metadata, liveness, pauses, selection.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import * as every from "../src/test_every_type.js";
import { Backoff, afterRefusal } from "../src/zlink/backoff.js";
import { ArgumentError, ErrorKinds, Metadata } from "../src/zlink/index.js";
import { f32Key, f64Key, i64Key, boolKey } from "../src/zlink/index.js";
import { Liveness } from "../src/zlink/liveness.js";
import { Malformed, call, parse, probe, service } from "../src/zlink/record.js";
import { Selector } from "../src/zlink/select.js";
import { Hello, RecordKind } from "../src/zlink/wire.js";
import { repository } from "./kit.js";

interface Vector {
  readonly name: string;
  readonly hex: string;
  readonly refused?: string;
  readonly is?: {
    readonly call?: "channel" | "node";
    readonly correlation?: number | null;
    readonly metadata_hex?: string;
    readonly content_type?: string;
    readonly operation?: number | { readonly channel: string; readonly packet: string };
    readonly payload_hex?: string | null;
    readonly timeout_ms?: number | null;
    readonly reply?: number;
    readonly error?: { readonly kind: string; readonly executed: string; readonly number: number; readonly text: string } | null;
    readonly probe?: number;
    readonly probe_ack?: number;
    readonly flow?: { readonly paused: boolean; readonly version: number } | null;
    readonly flow_hex?: string | null;
    readonly service?: string;
    readonly body_hex?: string;
  };
}

const vectors = JSON.parse(readFileSync(repository("schemas/zlink/vectors/records.json"), "utf8")) as readonly Vector[];
const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, "hex"));
const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

test("the golden vectors that a client sends are what it writes", () => {
  let checked = 0;
  for (const { name, hex, is } of vectors) {
    let written: Uint8Array | undefined;
    // A flow is for tracing between hosts.
    if (is?.call === "channel" && is.content_type === "" && (is.flow_hex ?? "") === "") {
      const { correlation, timeout_ms, operation = 0, metadata_hex = "", payload_hex } = is;
      const text = new TextEncoder();
      const head = call({
        request:
          typeof correlation === "number" ? { correlation, timeoutMs: timeout_ms ?? 0 } : undefined,
        operation:
          typeof operation === "number"
            ? operation
            : { channel: text.encode(operation.channel), packet: text.encode(operation.packet) },
        metadata: bytes(metadata_hex),
      });
      written = Buffer.concat([head, bytes(payload_hex ?? "")]);
    } else if (is?.probe !== undefined) {
      written = probe(RecordKind.Probe, BigInt(is.probe));
    } else if (is?.probe_ack !== undefined) {
      written = probe(RecordKind.ProbeAck, BigInt(is.probe_ack));
    } else if (is?.service === "Hello") {
      written = service(RecordKind.Hello, Hello.encode(Hello.decode(bytes(is.body_hex ?? ""))));
    }
    if (written === undefined) continue;
    assert.equal(hexOf(written), hex, name);
    checked += 1;
  }
  assert.ok(checked >= 7, `${checked} vectors`);
});

test("the golden vectors that a client receives are read so, and all others refused", () => {
  let read = 0;
  for (const { name, hex, is } of vectors) {
    const record = bytes(hex);
    if (is?.reply !== undefined) {
      const expected =
        is.error == null
          ? { is: "reply", correlation: is.reply, payload: bytes(is.payload_hex ?? "") }
          : {
              is: "failure",
              correlation: is.reply,
              kind: is.error.kind,
              execution: is.error.executed,
              text: is.error.text,
            };
      assert.deepEqual(parse(record), expected, name);
      if (is.error != null) assert.equal(Object.entries(ErrorKinds)[is.error.number]?.[0], is.error.kind);
    } else if (is?.probe !== undefined || is?.probe_ack !== undefined) {
      const id = BigInt(is.probe ?? is.probe_ack ?? 0);
      assert.deepEqual(parse(record), { is: is.probe === undefined ? "probeAck" : "probe", id }, name);
    } else if (is?.call === undefined && is?.flow != null) {
      assert.deepEqual(parse(record), { is: "flow", version: BigInt(is.flow.version), paused: is.flow.paused }, name);
    } else if (is?.service === "Admit" || is?.service === "Reject" || is?.service === "Update") {
      const kind = RecordKind[is.service];
      assert.deepEqual(parse(record), { is: "service", kind, body: bytes(is.body_hex ?? "") }, name);
    } else {
      // What cannot be used by anybody, and what a server never sends.
      assert.throws(() => parse(record), Malformed, name);
      continue;
    }
    read += 1;
  }
  assert.ok(read >= 8, `${read} vectors`);
});

test("what a newer minor puts behind a head is skipped", () => {
  const reply = bytes("01200005000000000700000000000000" + "0200aabb" + "0000" + "cc");
  assert.deepEqual(parse(reply), { is: "reply", correlation: 7, payload: bytes("cc") });
  assert.throws(() => parse(bytes("01200005000000000700000000000000" + "0200aabb" + "0900")), Malformed);
  assert.throws(() => parse(bytes("0120010000000000070000000000000000")), Malformed);
});

test("the greatest metadata passes, and one byte more is refused before anything is sent", () => {
  const metadata = new Metadata().set("k", "v".repeat(1024 - 2 - 3 - 1));
  assert.equal(metadata.encode().length, 1024);
  assert.throws(() => new Metadata().set("k", "v".repeat(1024 - 2 - 3)), ArgumentError);
  assert.throws(() => metadata.set("other", ""), ArgumentError);
  assert.equal(metadata.get("other"), undefined);
  metadata.set("k", "shorter").set("other", "fits");
  assert.deepEqual([metadata.get("k"), metadata.get("other")], ["shorter", "fits"]);
  for (const key of ["", "k".repeat(256), "a\0b", "\ud800"]) {
    assert.throws(() => new Metadata().set(key, ""), ArgumentError, JSON.stringify(key));
  }
  assert.throws(() => new Metadata().set("k", "a\0b"), ArgumentError);
  assert.throws(() => new Metadata().set("k", 1 as unknown as string), ArgumentError);
  assert.equal(new Metadata().encode().length, 0);
});

test("entries travel by rising bytes of their keys", () => {
  // By UTF-16, the second would stand before the first.
  const encoded = new Metadata().set("\uffff", "1").set("\u{10000}", "2").set("a", "3").encode();
  const place = (key: string) => Buffer.from(encoded).indexOf(key);
  assert.ok(place("a") < place("\uffff") && place("\uffff") < place("\u{10000}"));
});

test("typed keys have one text in every language", () => {
  const trace = "A1B2C3D4-0000-0000-0000-00000000000F";
  assert.equal(new Metadata().set(every.TRACE_ID, trace).get("trace-id"), trace.toLowerCase());
  assert.equal(new Metadata().set(every.ATTEMPT, 255).get("attempt"), "255");
  assert.throws(() => new Metadata().set(every.ATTEMPT, 256), ArgumentError);
  assert.equal(boolKey("k").toText(true), "true");
  assert.equal(i64Key("k").toText(-(2n ** 63n)), "-9223372036854775808");
  const floats: readonly [number, string][] = [
    [0.1, "0.1"],
    [-0, "-0"],
    [1e21, "1000000000000000000000"],
    [1.5e-7, "0.00000015"],
    [-1.25e22, "-12500000000000000000000"],
    [Infinity, "inf"],
    [-Infinity, "-inf"],
    [NaN, "NaN"],
  ];
  for (const [value, text] of floats) assert.equal(f64Key("k").toText(value), text);
  assert.equal(f32Key("k").toText(Math.fround(0.1)), "0.1");
  assert.equal(f32Key("k").toText(16777217), "16777216");
  assert.equal(f32Key("k").toText(3.4028234663852886e38), "340282350000000000000000000000000000000");
});

test("one probe is repeated until its own answer comes", () => {
  const link = new Liveness(0);
  assert.equal(link.tick(4_000, false), "nothing");
  assert.equal(link.tick(5_000, false), "probe");
  assert.equal(link.probe(5_000), 1n);
  assert.equal(link.tick(6_000, false), "nothing");
  assert.equal(link.tick(10_000, false), "probe");
  assert.equal(link.probe(10_000), 1n, "the same one, as it was not answered");
  assert.equal(link.answered(11_000, 2n), false);
  assert.equal(link.tick(15_000, false), "expired", "foreign answers restart nothing");

  const other = new Liveness(0);
  other.probe(5_000);
  assert.equal(other.answered(6_000, 1n), true);
  assert.equal(other.answered(14_000, 1n), false, "only the first counts");
  assert.equal(other.probe(10_000), 2n);
  assert.equal(other.tick(20_999, false), "probe");
  assert.equal(other.tick(21_000, false), "expired", "15 s after the answer of second 6");
});

test("where replies come, the answer may be behind them", () => {
  const link = new Liveness(0);
  link.probe(5_000);
  link.replied(14_000);
  assert.equal(link.tick(28_999, false), "probe");
  assert.equal(link.probe(28_999), 1n, "it still waits for its answer");
  assert.equal(link.tick(29_000, false), "expired", "15 s after the replies of second 14");
});

test("the limit stands still while data is held, and then runs in full", () => {
  const link = new Liveness(0);
  for (let second = 1; second < 100; second++) assert.equal(link.tick(second * 1000, true), "nothing");
  assert.equal(link.tick(100_000, false), "probe");
  assert.equal(link.tick(113_999, false), "probe");
  assert.equal(link.tick(114_000, false), "expired", "15 s after second 99");
});

test("pauses grow to five seconds and are spread over the whole range", () => {
  const backoff = new Backoff();
  for (const bound of [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]) {
    assert.equal(backoff.next(0.5), bound / 2);
  }
  backoff.reset();
  assert.equal(backoff.next(0), 1, "never 0");
  for (const random of [0, 0.5, 0.999]) assert.ok(afterRefusal(random) >= 45_000 && afterRefusal(random) < 75_000);
});

test("servers are taken by their weights, in the order that every language has", () => {
  const selector = new Selector<string>();
  const server = (name: string, weight: number) => ({ rid: Buffer.from(name), weight, target: name });
  const picks = (count: number) => Array.from({ length: count }, () => selector.pick(() => true) ?? "-").join("");
  assert.equal(picks(1), "-");
  selector.update([server("b", 300), server("a", 100)]);
  assert.equal(picks(8), "babbbabb");
  selector.update([server("a", 100), server("ab", 100)]);
  assert.match(picks(6), /^(aab){3}$/);
  selector.update([server("a", 100)]);
  selector.update([server("a", 100), server("b", 100)]);
  assert.equal(picks(4), "abab", "who comes back begins without credit");
  assert.equal(selector.pick((target) => target === "b"), "b", "one that is not open is passed over");
  assert.ok(selector.pick(() => false), "while another is");
});

test("no public declaration has the type any", () => {
  const folder = new URL("../src/", import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".d.ts"));
  assert.ok(files.length >= 25, `${files.length} files`);
  for (const file of files) {
    const code = readFileSync(new URL(file, folder), "utf8").replace(/\/\*[^]*?\*\/|"(?:[^"\\]|\\.)*"/g, "");
    assert.doesNotMatch(code, /[:<|&,(=]\s*any\b(?!\??:)/, file);
  }
});
