// Words of the language, names that every object has, and names that the generator uses, as names of everything that has
// one: the code compiles, which has been shown by now, and runs.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import * as words from "../src/class.js";
import * as obstacles from "../src/obstacles.js";
import { Metadata } from "../src/zlink/index.js";
import type { MessageType, MetadataKey } from "../src/zlink/index.js";
import { RecordKind } from "../src/zlink/wire.js";
import { until } from "./kit.js";
import { Server } from "./server.js";

const open: { close(): Promise<void> }[] = [];
after(async () => {
  for (const it of open) await it.close();
});

function isMessage(value: unknown): value is MessageType<Record<string, unknown>, object> {
  return typeof value === "object" && value !== null && "typeName" in value;
}

function isKey(value: unknown): value is MetadataKey<unknown> {
  return typeof value === "object" && value !== null && "toText" in value;
}

test("messages of every name go through their codecs", () => {
  let count = 0;
  for (const value of [...Object.values(words), ...Object.values(obstacles)]) {
    if (!isMessage(value)) continue;
    count += 1;
    let bytes;
    try {
      bytes = value.encode({});
    } catch (error) {
      assert.match(String(error), /is required and absent/, value.typeName);
      continue;
    }
    const decoded = value.decode(bytes);
    assert.deepEqual(value.encode(decoded), bytes, value.typeName);
  }
  assert.ok(count > 150, `${count} messages`);
});

test("fields of every name keep what they are given, and are absent where nothing is", () => {
  const empty = words.Fields.decode(words.Fields.encode({}));
  const names = Object.keys(empty);
  assert.ok(names.includes("class") && names.includes("toString_2") && names.includes("constructor_2"));
  assert.ok(Object.values(empty).every((value) => value === ""));
  const full = Object.fromEntries(names.map((name) => [name, `is ${name}`]));
  for (const type of [words.Fields, words.Required] as MessageType<unknown, object>[]) {
    assert.deepEqual(type.decode(type.encode(full)), full);
  }
  assert.throws(() => (words.Required as MessageType<unknown, object>).encode({}), /is required and absent/);
});

test("enums, structs, unions and imports of every name do as well", () => {
  const layout = Object.fromEntries(Object.keys(words.Layout.none).map((name, n) => [name, n % 256]));
  const held: words.HeldInput = {
    break: words.Words.Constructor,
    case: layout as unknown as words.Layout,
    catch: { kind: "Constructor", value: { text: "c" } },
    class: { text: "a promise" },
    const: { text: "a map" },
    continue: [{ kind: "Default", value: { text: "d" } }, { kind: "Unknown", value: { text: "u" } }],
    debugger: new Map([["k", { text: "v" }]]),
    default: [words.Words.Class, words.Words.Prototype, words.Words.Unspecified],
  };
  assert.deepEqual(words.Held.decode(words.Held.encode(held)), held);
});

test("metadata keys of every name are set", () => {
  const keys = Object.values(words).filter(isKey);
  assert.equal(keys.length, 40);
  for (const key of keys) assert.equal(new Metadata().set(key, "v").get(key.key), "v");
});

test("methods of every name call what they are named after", async () => {
  const server = await Server.bind();
  server.onRequest = ({ from, correlation, payload }) => void from.reply(correlation, payload);
  const client = words.client({ connect: server.endpoint });
  open.push({ close: () => client.close(0) }, server);
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(client)).filter(
    (name) => name !== "constructor" && name !== "close",
  );
  assert.ok(methods.includes("delete") && methods.includes("then_2") && methods.includes("constructor_2"));
  assert.equal(await Promise.resolve(client), client, "a client is no promise");
  for (const name of methods) {
    const method = Reflect.get(client, name) as (message: object) => Promise<unknown>;
    await method.call(client, { text: name });
  }
  await until("all calls", () => server.came.length === methods.length);
  const snake = (name: string) => name.replace(/_2$/, "").replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  server.came.forEach(({ operation, payload, kind }, index) => {
    assert.ok(typeof operation !== "number");
    const [channel, packet] = operation;
    const word = snake(methods[index] ?? "");
    assert.deepEqual([channel, packet.replace("globalThis", "global_this")], ["class", `class.class.${word}`]);
    const type = kind === RecordKind.ChannelRequest ? words.Promise : words.Map;
    assert.equal(type.decode(payload).text, methods[index]);
  });
});
