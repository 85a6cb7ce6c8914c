// The client against a real Rust host: what goes to it and comes back, and how it ends, drains, restarts and is full.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import * as interop from "../src/interop.js";
import * as every from "../src/test_every_type.js";
import { ArgumentError, CallError, Channel, Metadata } from "../src/zlink/index.js";
import type { ChannelOptions } from "../src/zlink/index.js";
import { Host } from "./host.js";
import type { HostOptions } from "./host.js";
import { PATIENCE, eventually, failsWith, failure, until } from "./kit.js";
import { least, sample } from "./sample.js";

/** Handlers of one channel that run at once. */
const AT_ONCE = 256;
/** Jobs that a host which is made narrow queues behind them; with the fourth it pauses its clients. */
const QUEUED = 4;

const ends: (() => Promise<void>)[] = [];
after(async () => {
  for (const end of ends) await end();
});

async function start(options: HostOptions = {}): Promise<Host> {
  const host = await Host.start(options);
  ends.push(() => host.kill());
  return host;
}

function connect(connect: string | readonly string[], options: Partial<ChannelOptions> = {}): interop.InteropClient {
  const client = interop.client({ connect, timeoutMs: PATIENCE, ...options });
  ends.push(() => client.close(0));
  return client;
}

const order = (number: number): interop.OrderInput => ({ number: BigInt(number) });
const hold = (number: number): interop.OrderInput => ({ what: "hold", number: BigInt(number) });
const pending = ({ channel }: interop.InteropClient) => channel.servers().map((server) => server.pending);

/** Makes the host full: few calls at a time, so that it does not pause, and go on, before all handlers hold. */
async function fill<T>(
  host: Host,
  client: interop.InteropClient,
  numbers: readonly number[],
  ask: (number: number) => Promise<T>,
): Promise<Promise<T>[]> {
  const answers: Promise<T>[] = [];
  while (answers.length < AT_ONCE) {
    answers.push(...numbers.slice(answers.length, answers.length + 2).map(ask));
    await until("they hold", async () => (await host.seen()).length === answers.length);
  }
  answers.push(...numbers.slice(AT_ONCE, AT_ONCE + QUEUED).map(ask));
  await until("it pauses", () => client.channel.servers()[0]?.state === "paused");
  return answers;
}

test("every type goes there and comes back", async () => {
  const client = connect((await start()).endpoint);
  assert.deepEqual(await client.echo(sample()), sample());
  assert.deepEqual(await client.echo(least()), least());
  const extreme: every.AllInput = {
    ...least(),
    anI64: 2n ** 63n - 1n,
    anF32: Infinity,
    anF64: 5e-324,
    aTimestamp: -(2n ** 63n),
    aString: "\u{10ffff}".repeat(16),
    someBytes: new Uint8Array(1024).fill(255),
    numberList: Array<number>(16).fill(65535),
    numberMap: new Map(Array.from({ length: 8 }, (_, n) => [`\u{1f600}${n}`, n])),
    aStruct: { ...least().aStruct, number: -0 },
  };
  assert.deepEqual(await client.echo(extreme), { ...least(), ...extreme });
});

test("numbers of enums that nobody knows yet go there and come back", async () => {
  const client = connect((await start()).endpoint);
  const odd = { ...least(), anEnum: 200, enumList: [7], enumMap: new Map([["k", 9]]) };
  assert.deepEqual(await client.echo(odd), odd);
  const wrong = { ...least(), unionList: [{ kind: "unknown", tag: 9 }] } as const;
  assert.ok((await failure(client.echo(wrong))) instanceof ArgumentError);
});

test("a maximum passes, and one beyond goes nowhere", async () => {
  const client = connect((await start()).endpoint);
  const most = { text: "ü".repeat(4), items: [1, 2, 3, 4] };
  assert.deepEqual(await client.bounded(most), most);
  assert.ok((await failure(client.bounded({ text: "ü".repeat(4) + "." }))) instanceof ArgumentError);
  assert.ok((await failure(client.bounded({ items: [1, 2, 3, 4, 5] }))) instanceof ArgumentError);
});

test("metadata arrives, typed keys as Rust reads them, up to its limit", async () => {
  const client = connect((await start()).endpoint);
  const metadata = new Metadata()
    .set(interop.TENANT, "acme")
    .set(interop.ATTEMPT, 255)
    .set(interop.WEIGHT, 1.5e-7)
    .set(interop.URGENT, true)
    .set(interop.TRACE, "01020304-0506-0708-090A-0B0C0D0E0F10")
    .set(interop.SINCE, -1n)
    .set(interop.LASTS, 2n ** 63n - 1n)
    .set("free", "");
  assert.deepEqual([...(await client.ask(order(1), { metadata })).metadata], [
    ["attempt", "255"],
    ["free", ""],
    ["lasts", "9223372036854775807"],
    ["since", "-1"],
    ["tenant", "acme"],
    ["trace", "01020304-0506-0708-090a-0b0c0d0e0f10"],
    ["urgent", "true"],
    ["weight", "0.00000015"],
  ]);
  for (const weight of [Infinity, -Infinity, NaN, -0, 1e300, 5e-324]) {
    await client.ask(order(1), { metadata: new Metadata().set(interop.WEIGHT, weight) });
  }
  const full = { k: "v".repeat(1018) };
  assert.deepEqual([...(await client.ask(order(2), { metadata: full })).metadata], Object.entries(full));
  assert.ok((await failure(client.ask(order(3), { metadata: { k: "v".repeat(1019) } }))) instanceof ArgumentError);
  assert.equal((await client.ask(order(4))).metadata.size, 0, "nothing of it stays");
  await failsWith(client.ask(order(5), { metadata: { weight: "much" } }), "InternalFailure", "Unknown");
});

test("one-way messages all arrive, and those that wait for each other in their order", async () => {
  const host = await start();
  const client = connect(host.endpoint);
  const numbers = Array.from({ length: 1000 }, (_, n) => n);
  await Promise.all(numbers.map((number) => client.tell(order(number))));
  await until("all of them", async () => (await host.seen()).length === numbers.length);
  assert.deepEqual([...(await host.seen())].sort((a, b) => a - b), numbers);
});

test("ten thousand requests at once", async () => {
  const host = await start();
  const client = connect(host.endpoint);
  const replies = await Promise.all(
    Array.from({ length: 10_000 }, (_, n) => client.ask(order(n), { timeoutMs: 120_000 })),
  );
  replies.forEach(({ number }, n) => assert.equal(number, BigInt(n)));
  assert.equal((await host.seen()).length, 10_000);
});

test("a handler that fails or panics is told of, and the host goes on", async () => {
  const client = connect((await start({ name: "robust" })).endpoint);
  await failsWith(client.ask({ what: "fail" }), "InternalFailure", "Unknown");
  await failsWith(client.ask({ what: "panic" }), "InternalFailure", "Unknown");
  const { who, mood, detail } = await client.ask(order(7));
  assert.deepEqual([who, mood], ["robust", interop.Mood.Calm]);
  assert.deepEqual(detail, { kind: "Order", value: { what: "", number: 7n, body: new Uint8Array() } });
});

test("a deadline and a signal end a request that a handler holds", async () => {
  const host = await start();
  const client = connect(host.endpoint);
  await client.channel.ready(1, { timeoutMs: PATIENCE });
  let number = 10;
  const ends = async (call: (order: interop.OrderInput) => Promise<unknown>) => {
    await eventually("a handler holds it when its deadline passes", async () => {
      number += 1;
      const error = await failure(call(hold(number)));
      assert.ok(error instanceof CallError && error.kind === "DeadlineExceeded", String(error));
      return (await host.seen()).includes(number) && error.execution === "Unknown";
    });
  };
  await ends((order) => client.hurry(order));
  await ends((order) => client.ask(order, { timeoutMs: 50 }));
  const stop = new AbortController();
  const cancelled = failure(client.ask(hold(1), { signal: stop.signal }));
  await until("it runs", async () => (await host.seen()).includes(1));
  stop.abort(new Error("enough"));
  assert.equal(((await cancelled) as Error).message, "enough");
  await host.release();
  assert.equal((await client.ask(order(2))).number, 2n, "late replies are dropped");
  assert.deepEqual((await host.seen()).filter((number) => number < 10), [1, 2]);
});

test("the greatest record passes, and one that is longer is refused on this side", async () => {
  const host = await start({ maxMessage: 100_000 });
  const client = connect(host.endpoint);
  const bytes = (length: number) => client.ask({ body: new Uint8Array(length) });
  // The reply has the body twice.
  assert.equal((await bytes(49_000)).body.length, 49_000);
  const error = await failure(bytes(100_000));
  assert.ok(error instanceof ArgumentError, String(error));
  assert.match(error.message, /this link carries at most 100000/);
  const tooLong = await failure(bytes(60_000));
  assert.ok(tooLong instanceof CallError, "the reply is too long for the link");
  assert.equal(tooLong.execution, "Unknown");
  assert.equal((await bytes(1)).body.length, 1, "the link stands");
});

test("large records go both ways", async () => {
  const client = connect((await start()).endpoint);
  const body = new Uint8Array(6_000_000).map((_, at) => at % 251);
  for (const reply of await Promise.all([client.ask({ body }), client.ask({ body })])) {
    assert.equal(Buffer.compare(reply.body, body), 0);
  }
});

test("what a killed host had taken is lost; what it had not goes to the next run, and runs once", async () => {
  const host = await start();
  const client = connect(host.endpoint);
  const taken = failsWith(client.ask(hold(1)), "Unavailable", "Unknown");
  await until("it runs", async () => (await host.seen()).includes(1));
  await host.kill();
  await taken;
  const patient = client.ask(order(2));
  await failsWith(client.ask(order(3), { timeoutMs: 100 }), "DeadlineExceeded", "NotExecuted");
  const later = await start({ endpoint: host.endpoint, name: "later" });
  assert.equal((await patient).who, "later");
  assert.deepEqual(await later.seen(), [2], "nothing but what had not been sent");
});

test("a host that drains finishes what it has, and new calls go to another", async () => {
  const [one, two] = [await start({ name: "one" }), await start({ name: "two" })];
  const client = connect([one.endpoint, two.endpoint]);
  await client.channel.ready(2, { timeoutMs: PATIENCE });
  const answers = [client.ask(hold(1)), client.ask(hold(2))];
  await until("both are there", () => pending(client).every((count) => count === 1));
  await until("it runs", async () => (await one.seen()).length > 0);
  await one.drain();
  await until("it drains", () => client.channel.servers()[0]?.state === "draining");
  for (let n = 3; n < 9; n++) assert.equal((await client.ask(order(n))).who, "two");
  await one.release();
  await two.release();
  const who = (await Promise.all(answers)).map((answer) => answer.who);
  assert.deepEqual(who.sort(), ["one", "two"]);
  await until("its link is gone", () => client.channel.servers()[0]?.state === "connecting");
  assert.equal((await client.ask(order(9))).who, "two");
});

test("a full host pauses its clients: requests wait here, end by their own deadlines, and go on with it", async () => {
  const host = await start({ jobs: QUEUED });
  const client = connect(host.endpoint);
  const numbers = Array.from({ length: AT_ONCE + QUEUED + 100 }, (_, n) => n);
  const ask = (number: number) => client.ask(hold(number), { timeoutMs: 120_000 });
  const answers = await fill(host, client, numbers, ask);
  answers.push(...numbers.slice(AT_ONCE + QUEUED).map(ask));
  const hasty = await failsWith(client.ask(order(9999), { timeoutMs: 200 }), "DeadlineExceeded", "NotExecuted");
  assert.match(hasty.message, /no room to send appeared in time/);
  assert.equal((await host.seen()).length, AT_ONCE);
  await host.release();
  assert.equal((await Promise.all(answers)).length, numbers.length);
  const seen = [...(await host.seen())].sort((a, b) => a - b);
  assert.deepEqual(seen, numbers, "each ran once, and the hasty one never");
});

test("a host that is full and restarts is given nothing twice", async () => {
  const host = await start({ jobs: QUEUED });
  const client = connect(host.endpoint);
  const numbers = Array.from({ length: AT_ONCE + QUEUED + 100 }, (_, n) => n);
  const ask = (number: number) =>
    client.ask(hold(number), { timeoutMs: 120_000 }).then(
      () => "answered",
      (error: unknown) => (error instanceof CallError ? error.execution : String(error)),
    );
  const outcomes = await fill(host, client, numbers, ask);
  outcomes.push(...numbers.slice(AT_ONCE + QUEUED).map(ask));
  await host.kill();
  const later = await start({ endpoint: host.endpoint });
  await later.release();
  const ended = await Promise.all(outcomes);
  const again = [...(await later.seen())].sort((a, b) => a - b);
  assert.deepEqual(again, numbers.filter((number) => ended[number] === "answered"));
  const expected = numbers.map((number) => (number < AT_ONCE + QUEUED ? "Unknown" : "answered"));
  assert.deepEqual(ended, expected, "what was given to the first run may have run there; the others waited here");
});

test("a host ahead of its client: what was added is ignored or kept, and what does not fit ends at once, by name", async () => {
  const host = await start({ version: "next" });
  const client = connect(host.endpoint);
  const { mood, detail, number } = await client.ask(order(5));
  assert.deepEqual([mood, detail, number], [7, { kind: "unknown", tag: 9 }, 5n]);
  await client.tell(order(6));
  await failsWith(client.echo(least()), "NotFound", "NotExecuted");
  await failsWith(client.bounded({ text: "x" }), "ProtocolError", "NotExecuted");
  await failsWith(client.hurry(order(8), { timeoutMs: 30_000 }), "ProtocolError", "Unknown");
});

test("a channel that the host does not serve is refused, shown, and not waited for", async () => {
  const host = await start();
  const options = { connect: host.endpoint, timeoutMs: PATIENCE };
  const nobody = new interop.InteropClient(new Channel("nobody", options));
  ends.push(() => nobody.close(0));
  const what = 'the server refused: Channel: this is channel "interop", not "nobody"';
  for (const call of [nobody.ask(order(1)), nobody.tell(order(2))]) {
    const error = await failsWith(call, "NotFound", "NotExecuted");
    assert.equal(error.message, `NotFound: no endpoint has a server of channel "nobody"; ${host.endpoint}: ${what}`);
  }
  assert.equal(nobody.channel.servers()[0]?.failure, what);
  assert.deepEqual(await host.seen(), []);
});

test("a call that found no server tells what hinders each endpoint", async () => {
  const gone = await start();
  await gone.kill();
  const endpoints = [gone.endpoint, "tcp://no-such-host.invalid:7001"];
  const client = connect(endpoints);
  await until("both fail", () => client.channel.servers().every(({ failure }) => failure === "no connection was made"));
  const error = await failsWith(client.ask(order(1), { timeoutMs: 100 }), "DeadlineExceeded", "NotExecuted");
  const why = endpoints.map((endpoint) => `; ${endpoint}: no connection was made`).join("");
  assert.equal(error.message, `DeadlineExceeded: no server of channel "interop" was ready in time${why}`);
});

test("a Unix socket is an endpoint, too", async () => {
  const path = `/tmp/zlink-ts-${process.pid}`;
  const host = await start({ endpoint: `ipc://${path}` });
  const client = connect(host.endpoint);
  assert.equal((await client.ask(order(1))).number, 1n);
});
