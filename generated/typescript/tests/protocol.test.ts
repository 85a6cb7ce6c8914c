// The client against a server that does what the test wants: admission, flow, liveness, ends, and nothing sent twice.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import * as contract from "../src/contract.js";
import { ArgumentError, CallError, Channel } from "../src/zlink/index.js";
import type { ChannelEvent, ChannelOptions } from "../src/zlink/index.js";
import { Hello, NodeState, RecordKind, Reject, RejectReason, Topology } from "../src/zlink_wire.js";
import type { HelloInput } from "../src/zlink_wire.js";
import { PATIENCE, eventually, failsWith, failure, until } from "./kit.js";
import { Server, service } from "./server.js";
import type { Came, ServerOptions } from "./server.js";

const open: { close(): Promise<void> }[] = [];
after(async () => {
  for (const it of open) await it.close();
});

function client(connect: string | readonly string[], options: Partial<ChannelOptions> = {}): contract.OrdersClient {
  const client = contract.ordersClient({ connect, ...options });
  open.push({ close: () => client.close(0) });
  return client;
}

async function server(options: ServerOptions = {}): Promise<Server> {
  const server = await Server.bind(options);
  open.push(server);
  return server;
}

/** Answers with what came. */
function echo({ from, correlation, payload }: Came): void {
  void from.reply(correlation, payload);
}

const note = (text: string): contract.NoteInput => ({ text });
const textOf = ({ payload }: Came) => contract.Note.decode(payload).text;

test("a hello says what the protocol wants, and calls carry names or numbers, metadata and time", async () => {
  const there = await server();
  there.onRequest = echo;
  const orders = client(there.endpoint, { securityIdentity: "", maxMessage: 100_000 });
  const reply = await orders.ask(note("by number"), { metadata: { tenant: "acme", empty: "" }, timeoutMs: 60_000.2 });
  assert.deepEqual(reply, { text: "by number", number: 0n, body: new Uint8Array() });
  await orders.brief({ text: "by name" }).catch(() => undefined);
  await orders.tell(note("one way"));

  const { hello } = await there.client();
  assert.deepEqual(
    [hello.topology, hello.scope, hello.revision, hello.maxMessage, hello.state, hello.channels, hello.endpoint],
    [Topology.ClientServer, "orders", 1n, 100_000n, NodeState.Serving, [], ""],
  );
  assert.match(Buffer.from(hello.rid).toString(), /^client-[0-9a-f-]{36}$/);
  assert.notEqual(hello.generation, 0n);

  const [asked, brief, told] = [await there.next(0), await there.next(1), await there.next(2)];
  assert.equal(asked.operation, 0);
  assert.equal(asked.metadata.toString("hex"), "0002050000656d70747906040074656e616e7461636d65");
  assert.ok(asked.timeoutMs > 30_000 && asked.timeoutMs <= 60_001, String(asked.timeoutMs));
  assert.deepEqual(brief.operation, ["orders", "contract.orders.brief"]);
  assert.ok(brief.timeoutMs <= 30_000 && brief.timeoutMs > 5_000);
  assert.deepEqual([told.kind, told.operation, textOf(told)], [RecordKind.ChannelSend, ["orders", "contract.orders.tell"], "one way"]);
});

test("what is made in one turn travels in one message, up to its bound, in order", async () => {
  const there = await server();
  there.onRequest = echo;
  const orders = client(there.endpoint);
  await orders.channel.ready(1, { timeoutMs: PATIENCE });
  const texts = Array.from({ length: 3000 }, (_, n) => `${n}`);
  const replies = await Promise.all(texts.map((text) => orders.ask(note(text))));
  assert.deepEqual(replies.map(({ text }) => text), texts);
  assert.deepEqual(there.came.map(textOf), texts);
  assert.ok(there.joined >= 3, "they were joined");
});

test("probes are answered, also while the server holds everything back", async () => {
  const there = await server();
  client(there.endpoint);
  const link = await there.client();
  await link.probe(RecordKind.Probe, 77n);
  await until("an answer", () => link.acks.includes(77n));
  await link.pause(true);
  await link.probe(RecordKind.Probe, 78n);
  await until("another", () => link.acks.includes(78n));
});

test("PAUSED holds calls back, each bounded by its own deadline; RUNNING lets go what is left", async () => {
  const there = await server();
  there.onRequest = echo;
  const orders = client(there.endpoint);
  const link = await there.client();
  await link.pause(true, 5n);
  await link.settled();
  await link.pause(false, 4n);
  await link.settled();

  const short = orders.ask(note("too late"), { timeoutMs: 50 });
  const long = orders.ask(note("in time"));
  const told = orders.tell(note("one way"));
  const gone = new AbortController();
  const withdrawn = orders.ask(note("withdrawn"), { signal: gone.signal });
  await failsWith(short, "DeadlineExceeded", "NotExecuted");
  const reason = new Error("never mind");
  gone.abort(reason);
  assert.equal(await failure(withdrawn), reason);
  await link.settled();
  assert.equal(there.came.length, 0);

  await link.pause(false, 6n);
  assert.equal((await long).text, "in time");
  await told;
  await link.settled();
  assert.deepEqual(there.came.map(textOf), ["in time", "one way"]);
});

test("a paused server is passed over while another is not", async () => {
  const [one, two] = [await server({ rid: "one" }), await server({ rid: "two" })];
  one.onRequest = two.onRequest = echo;
  const orders = client([one.endpoint, two.endpoint]);
  await orders.channel.ready(2, { timeoutMs: PATIENCE });
  const link = await one.client();
  await link.pause(true);
  await link.settled();
  assert.deepEqual(orders.channel.servers().map(({ state }) => state), ["paused", "ready"]);
  for (let n = 0; n < 6; n++) await orders.ask(note("x"));
  assert.deepEqual([one.came.length, two.came.length], [0, 6]);
});

test("a call that was sent and is cancelled is only not waited for; its late reply ends nothing", async () => {
  const there = await server();
  const orders = client(there.endpoint);
  const stop = new AbortController();
  const first = orders.ask(note("first"), { signal: stop.signal });
  const came = await there.next();
  stop.abort();
  assert.equal((await failure(first) as Error).name, "AbortError");
  const second = orders.ask(note("second"));
  const next = await there.next(1);
  assert.notEqual(next.correlation, came.correlation);
  await came.from.reply(came.correlation, contract.Note.encode(note("late")));
  await next.from.reply(next.correlation, contract.Note.encode(note("right")));
  await next.from.reply(next.correlation, contract.Note.encode(note("twice")));
  assert.equal((await second).text, "right");
  assert.equal((await failure(orders.ask(note("x"), { signal: stop.signal })) as Error).name, "AbortError");
  await came.from.settled();
  assert.equal(there.came.length, 2, "an aborted signal sends nothing");
});

test("the deadline ends a request that was sent, and says that it may have run", async () => {
  const there = await server();
  const orders = client(there.endpoint, { timeoutMs: 80 });
  await orders.channel.ready(1, { timeoutMs: PATIENCE });
  const ends = async (call: () => Promise<unknown>, least: number, most: number) => {
    await eventually("it was sent in time", async () => {
      const before = there.came.length;
      const error = await failure(call());
      assert.ok(error instanceof CallError && error.kind === "DeadlineExceeded", String(error));
      if (error.execution === "NotExecuted") return false;
      const { timeoutMs } = await there.next(before);
      assert.ok(timeoutMs <= most, String(timeoutMs));
      return timeoutMs > least;
    });
  };
  await ends(() => orders.hurry(note("the schema's 150 ms")), 80, 150);
  await ends(() => orders.ask(note("the client's 80 ms")), 0, 80);
});

test("what a server that ends had taken is lost and told so; nothing reaches a later run", async () => {
  const there = await server();
  const orders = client(there.endpoint);
  const taken = failsWith(orders.ask(note("taken")), "Unavailable", "Unknown");
  const { from } = await there.next();
  await from.pause(true);
  await from.settled();
  const waiting = orders.ask(note("waiting"));
  const { endpoint } = there;
  await there.close();
  await taken;

  const later = await server({ endpoint });
  later.onRequest = echo;
  assert.equal((await waiting).text, "waiting", "it was handed to nobody, and goes to the later run");
  await (await later.client()).settled();
  assert.deepEqual(later.came.map(textOf), ["waiting"]);
});

test("a request without a server waits for one as long as it may", async () => {
  const there = await server();
  const { endpoint } = there;
  await there.close();
  const orders = client(endpoint);
  await failsWith(orders.ask(note("nobody"), { timeoutMs: 50 }), "DeadlineExceeded", "NotExecuted");
  await failsWith(orders.channel.ready(1, { timeoutMs: 20 }), "DeadlineExceeded", "NotExecuted");
  const waiting = orders.ask(note("patient"));
  const later = await server({ endpoint });
  later.onRequest = echo;
  assert.equal((await waiting).text, "patient");
});

test("a one-way message waits no longer than it was told", async () => {
  const there = await server();
  const { endpoint } = there;
  await there.close();
  const orders = client(endpoint, { sendTimeoutMs: 30 });
  await failsWith(orders.tell(note("x")), "DeadlineExceeded", "NotExecuted");
});

test("errors come as the server tells them", async () => {
  const there = await server();
  const orders = client(there.endpoint);
  there.onRequest = ({ from, correlation }) => void from.fail(correlation, 4, 0, "drains");
  const error = await failsWith(orders.ask(note("x")), "Rejected", "NotExecuted");
  assert.equal(error.message, "Rejected: drains");
  there.onRequest = ({ from, correlation }) => void from.fail(correlation, 12, 1, "ü".repeat(128));
  await failsWith(orders.ask(note("x")), "InternalFailure", "Unknown");
});

test("replies that are none end their own request, and no other", async () => {
  const there = await server();
  const events: ChannelEvent[] = [];
  const orders = client(there.endpoint, { onEvent: (event) => events.push(event) });
  const wrong: ((came: Came) => void)[] = [
    ({ from, correlation }) => void from.fail(correlation, 13, 0, "an unknown kind"),
    ({ from, correlation }) => void from.fail(correlation, 4, 2, "neither nor"),
    ({ from, correlation }) => void from.fail(correlation, 4, 0, "x".repeat(257)),
    ({ from, correlation }) => void from.fail(correlation, 4, 0, new Uint8Array([0xff])),
    ({ from, correlation }) => void from.reply(correlation, new Uint8Array([1, 2, 3])),
    ({ from, correlation }) => void from.reply(correlation, new Uint8Array(), 1),
  ];
  for (const answer of wrong) {
    there.onRequest = answer;
    await failsWith(orders.ask(note("x")), "ProtocolError", "Unknown");
  }
  there.onRequest = ({ from, correlation, payload }) => {
    void from.reply(correlation, payload, 0x0100, new Uint8Array([1, 0, 9]));
  };
  assert.equal((await orders.ask(note("a newer minor"))).text, "a newer minor");
  there.onRequest = ({ from, correlation, payload }) => {
    void from.reply(correlation + 1000n, payload);
    void from.reply(correlation, payload);
  };
  await orders.ask(note("x"));
  assert.ok(events.every(({ type }) => type !== "lost"), "the link stands");
  assert.match(events.at(-1)?.detail ?? "", /to no request that waits/);
});

test("a record that no server sends, or lengths that do not add up, end the link", async () => {
  const there = await server();
  const orders = client(there.endpoint);
  there.onRequest = echo;
  const entry = (...bytes: number[]) => new Uint8Array([bytes.length, 0, 0, 0, ...bytes]);
  const frames = [
    entry(1, RecordKind.ChannelSend, 0, 0, 0, 0, 0, 0),
    entry(1, RecordKind.NotRequired, 0, 0),
    entry(1, 99, 0, 0),
    entry(2, RecordKind.Reply, 0, 0),
    entry(1, RecordKind.Probe, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    entry(1),
    new Uint8Array([0, 0, 0, 0]),
    new Uint8Array([9, 0, 0, 0, 1]),
    new Uint8Array([1]),
  ];
  for (const frame of frames) {
    await orders.channel.ready(1, { timeoutMs: PATIENCE });
    const lost = failsWith(orders.ask(note("lost")), "Unavailable", "Unknown");
    there.onRequest = ({ from }) => void from.garble(frame);
    await lost;
    there.onRequest = echo;
    assert.equal((await orders.ask(note("again"))).text, "again", `after ${Buffer.from(frame).toString("hex")}`);
  }
});

test("a reply that came before the end of its link counts", async () => {
  const there = await server();
  const orders = client(there.endpoint);
  const asked = Array.from({ length: 50 }, (_, n) => orders.ask(note(`${n}`)));
  await there.next(49);
  await Promise.all(there.came.map(({ from, correlation, payload }) => from.reply(correlation, payload)));
  await there.close();
  assert.equal((await Promise.all(asked)).length, 50);
});

test("a server that drains, or has weight 0, is given nothing new", async () => {
  const [one, two] = [await server({ rid: "one" }), await server({ rid: "two" })];
  one.onRequest = two.onRequest = echo;
  const orders = client([one.endpoint, two.endpoint]);
  await orders.channel.ready(2, { timeoutMs: PATIENCE });
  const link = await one.client();
  const ask = async () => {
    const before = one.came.length;
    for (let n = 0; n < 4; n++) await orders.ask(note("x"));
    return one.came.length - before;
  };
  assert.equal(await ask(), 2);
  await link.update(2n, { weight: 300 });
  await link.settled();
  assert.equal(await ask(), 3);
  await link.update(2n, { weight: 100 });
  await link.settled();
  assert.equal(await ask(), 3, "an update that is not newer changes nothing");
  await link.update(3n, { weight: 0 });
  await link.settled();
  assert.equal(await ask(), 0);
  await link.update(4n, { weight: 100 });
  await link.settled();
  assert.equal(await ask(), 2);

  one.onRequest = () => undefined;
  const outstanding = [orders.ask(note("kept")), orders.ask(note("kept"))];
  await until("one of them", () => one.came.some((came) => textOf(came) === "kept"));
  await link.update(5n, { state: NodeState.Draining });
  await link.settled();
  assert.equal(await ask(), 0);
  assert.equal(orders.channel.servers().find(({ endpoint }) => endpoint === one.endpoint)?.state, "draining");
  const kept = one.came.find((came) => textOf(came) === "kept");
  if (kept !== undefined) echo(kept);
  await Promise.all(outstanding);
});

test("what waits at a server that drains goes to another", async () => {
  const one = await server({ rid: "one" });
  const orders = client([one.endpoint]);
  const link = await one.client();
  await link.pause(true);
  await link.settled();
  const waiting = orders.ask(note("moves"));
  const two = await server({ rid: "two" });
  two.onRequest = echo;
  const both = client([one.endpoint, two.endpoint]);
  await both.channel.ready(2, { timeoutMs: PATIENCE });
  const [mine, theirs] = [await one.client(2), await two.client()];
  for (const it of [mine, theirs]) {
    await it.pause(true);
    await it.settled();
  }
  const moved = [both.ask(note("a")), both.ask(note("b"))];
  await mine.update(2n, { state: NodeState.Draining });
  await mine.settled();
  await theirs.pause(false);
  assert.deepEqual((await Promise.all(moved)).map(({ text }) => text).sort(), ["a", "b"]);
  assert.equal(one.came.length, 0);
  await link.pause(false);
  echo(await one.next());
  assert.equal((await waiting).text, "moves");
});

test("an admit that does not fit is refused with its reason", async () => {
  const channels = (name: string, weight = 100) => ({ channels: [{ name, weight }] });
  const cases: readonly [RejectReason, Partial<HelloInput>][] = [
    [RejectReason.Topology, { topology: Topology.RouteMesh }],
    [RejectReason.Channel, { scope: "stock" }],
    [RejectReason.Channel, channels("stock")],
    [RejectReason.Channel, { channels: [] }],
    [RejectReason.InvalidDescriptor, channels("orders", 10_001)],
    [RejectReason.SecurityIdentity, { securityIdentity: "blue" }],
    [RejectReason.Capability, { capabilities: ["wings"] }],
    [RejectReason.InvalidDescriptor, { generation: 0n }],
    [RejectReason.InvalidDescriptor, { revision: 0n }],
    [RejectReason.InvalidDescriptor, { state: NodeState.Unspecified }],
    [RejectReason.InvalidDescriptor, { rid: new Uint8Array() }],
    [RejectReason.InvalidDescriptor, { role: 9 }],
    [RejectReason.InvalidDescriptor, { maxMessage: 4095n }],
    [RejectReason.InvalidDescriptor, { operations: [{ channel: "orders", packet: "" }] }],
    [RejectReason.InvalidDescriptor, { operations: Array(2).fill({ channel: "orders", packet: "twice" }) }],
  ];
  for (const [reason, admit] of cases) {
    const there = await server({ admit });
    const orders = client(there.endpoint);
    await until(`a reject for ${JSON.stringify(reason)}`, () => there.rejects.length > 0);
    assert.equal(there.rejects[0]?.reason, reason, there.rejects[0]?.text);
    await orders.close(0);
    await there.close();
  }
});

test("a refusal is shown, and asked about again", async () => {
  const events: ChannelEvent[] = [];
  const reject = (reason: RejectReason) => service(RecordKind.Reject, Reject.encode({ reason, text: "not today" }));
  const there = await server({
    answer(hello) {
      const refused = events.filter(({ type }) => type === "refused").length;
      if (refused < 2) return [reject(RejectReason.NotServing)];
      return [service(RecordKind.Admit, Hello.encode(there.admit(hello)))];
    },
  });
  const orders = client(there.endpoint, { onEvent: (event) => events.push(event) });
  await orders.channel.ready(1, { timeoutMs: PATIENCE });
  // Where the machine stands still for longer than a handshake may take, attempts fail between.
  const told = events.filter(({ type }) => type !== "failed");
  assert.deepEqual(told.map(({ type }) => type), ["refused", "refused", "ready"]);
  assert.match(told[0]?.detail ?? "", /not today/);

  const identity = await server({ answer: () => [reject(RejectReason.Identity)] });
  const other = client(identity.endpoint);
  await until("the refusal", () => (other.channel.servers()[0]?.failure ?? "").includes("not today"));
  const closed = await server({ answer: () => [reject(0 as RejectReason)] });
  const third = client(closed.endpoint);
  await until("the end", () => (third.channel.servers()[0]?.failure ?? "").includes("unknown reason"));
});

test("calls wait for no endpoint that is something else, until it is right", async () => {
  let refuses = true;
  const says = (reason: RejectReason, text: string): ServerOptions => ({
    answer(hello) {
      const it = reason === RejectReason.Topology ? mesh : renamed;
      return refuses ? [service(RecordKind.Reject, Reject.encode({ reason, text }))] : [service(RecordKind.Admit, Hello.encode(it.admit(hello)))];
    },
  });
  const renamed = await server(says(RejectReason.Channel, "this is another channel"));
  const mesh = await server(says(RejectReason.Topology, "this is a mesh"));
  const busy = await server({ answer: () => (refuses ? [service(RecordKind.Reject, Reject.encode({ reason: RejectReason.NotServing, text: "later" }))] : []) });
  renamed.onRequest = echo;
  mesh.onRequest = echo;
  const orders = client([renamed.endpoint, mesh.endpoint], { timeoutMs: PATIENCE });
  const waits = client([renamed.endpoint, busy.endpoint], { timeoutMs: PATIENCE });
  const error = await failsWith(orders.ask(note("nowhere")), "NotFound", "NotExecuted");
  assert.match(error.message, /this is another channel.*this is a mesh/);
  await failsWith(orders.tell(note("nowhere")), "NotFound", "NotExecuted");
  await until("both are refused", () => waits.channel.servers().every(({ failure }) => failure !== undefined));
  const waiting = waits.ask(note("who is not serving yet may serve soon"));
  const still = await Promise.race([waiting, Promise.resolve("waits")]);
  assert.equal(still, "waits");
  refuses = false;
  assert.equal((await waiting).text, "who is not serving yet may serve soon");
  await orders.channel.ready(1, { timeoutMs: PATIENCE });
  assert.equal((await orders.ask(note("found"))).text, "found");
});

test("two endpoints of one server are one link", async () => {
  const there = await server({ rid: "same" });
  there.onRequest = echo;
  const orders = client([there.endpoint, there.endpoint.replace("127.0.0.1", "localhost")]);
  await until("the duplicate", () => there.rejects.some(({ reason }) => reason === RejectReason.Duplicate));
  const ready = () => orders.channel.servers().filter(({ state }) => state === "ready").length;
  assert.equal(ready(), 1);
  assert.equal((await orders.ask(note("x"))).text, "x");
  await there.close();
});

test("a later run of a server takes the place of the one before", async () => {
  const old = await server({ rid: "same", admit: { generation: 1n } });
  const { endpoint } = await server();
  await (open.pop() as Server).close();
  const orders = client([old.endpoint, endpoint]);
  const lost = failsWith(orders.ask(note("taken")), "Unavailable", "Unknown");
  await old.next();
  const later = await server({ rid: "same", endpoint, admit: { generation: 2n } });
  later.onRequest = echo;
  await lost;
  assert.equal((await orders.ask(note("x"))).text, "x");
  assert.equal(old.came.length, 1);
});

test("a server that reads nothing is given no more than a window, and what waits can be withdrawn", async () => {
  const there = await server({ acks: false });
  const orders = client(there.endpoint);
  await orders.channel.ready(1, { timeoutMs: PATIENCE });
  const body = new Uint8Array(60_000);
  const stop = new AbortController();
  const calls = Array.from({ length: 60 }, () => orders.ask({ body }, { signal: stop.signal }).catch(() => undefined));
  await until("what fits", () => there.bytes > 900_000);
  const link = await there.client();
  await link.settled();
  assert.ok(there.bytes <= 1_100_000, `${there.bytes} bytes`);
  assert.equal(new Set(link.probes).size, 1, "one probe at a time asks how far the server is");
  const waiting = orders.ask({ body }, { timeoutMs: 50 });
  await failsWith(waiting, "DeadlineExceeded", "NotExecuted");
  const before = there.came.length;
  stop.abort();
  await Promise.all(calls);
  there.acks = true;
  await link.probe(RecordKind.ProbeAck, link.probes[0] ?? 0n);
  there.onRequest = echo;
  assert.equal((await orders.ask(note("after"))).text, "after");
  assert.equal(there.came.length, before + 1, "what was withdrawn never went");
});

test("records larger than the window go one by one", async () => {
  const there = await server();
  there.onRequest = echo;
  const orders = client(there.endpoint);
  const replies = await Promise.all(
    Array.from({ length: 4 }, (_, n) => orders.ask({ number: BigInt(n), body: new Uint8Array(3_000_000) })),
  );
  assert.deepEqual(replies.map(({ number }) => number), [0n, 1n, 2n, 3n]);
});

test("a message that is longer than the link carries is refused, and the next one goes", async () => {
  const there = await server({ admit: { maxMessage: 5000n } });
  there.onRequest = echo;
  const orders = client(there.endpoint);
  const bytes = (count: number) => orders.ask({ body: new Uint8Array(count) });
  // What stands around the body: a head by number, a table with its vtable, lengths and padding.
  const around = contract.Note.encode({ body: new Uint8Array(1000) }).length - 1000 + 24;
  assert.equal((await bytes(5000 - around)).body.length, 5000 - around);
  const error = await failure(bytes(5004 - around));
  assert.ok(error instanceof ArgumentError && error.argument === "message", String(error));
  assert.match(error.message, /needs 5004 bytes on the wire; this link carries at most 5000/);
  assert.equal((await bytes(1)).body.length, 1);
  assert.equal(there.came.length, 2);
});

test("mistakes of the caller are refused before anything is sent", async () => {
  const there = await server();
  const orders = client(there.endpoint);
  const mistakes: readonly [string, Promise<unknown>][] = [
    ["message", orders.brief({ text: "123456789" })],
    ["message", orders.ask({ number: -1n })],
    ["timeoutMs", orders.ask({}, { timeoutMs: 0 })],
    ["timeoutMs", orders.ask({}, { timeoutMs: Number.NaN })],
    ["timeoutMs", orders.ask({}, { timeoutMs: 2 ** 31 })],
    ["metadata", orders.ask({}, { metadata: { "": "x" } })],
    ["metadata", orders.tell({}, { metadata: { k: "v".repeat(1019) } })],
  ];
  for (const [argument, call] of mistakes) {
    const error = await failure(call);
    assert.ok(error instanceof ArgumentError, String(error));
    assert.equal(error.argument, argument);
  }
  await (await there.client()).settled();
  assert.equal(there.came.length, 0);
  const options: readonly [string, Partial<ChannelOptions>][] = [
    ["connect", { connect: [] }],
    ["connect", { connect: "127.0.0.1:7001" }],
    ["connect", { connect: "tcp://127.0.0.1:0" }],
    ["connect", { connect: "tcp://127.0.0.1:65536" }],
    ["connect", { connect: "tcp://*:7001" }],
    ["connect", { connect: "tcp://\ud800:7001" }],
    ["timeoutMs", { timeoutMs: -1 }],
    ["maxMessage", { maxMessage: 4095 }],
    ["securityIdentity", { securityIdentity: "x".repeat(256) }],
    ["securityIdentity", { securityIdentity: "half \ud800" }],
  ];
  for (const [argument, wrong] of options) {
    assert.throws(
      () => new Channel("orders", { connect: there.endpoint, ...wrong }),
      (error) => error instanceof ArgumentError && error.argument === argument,
    );
  }
  for (const wrong of ["", "\udfff"]) assert.throws(() => new Channel(wrong, { connect: there.endpoint }), ArgumentError);
});

test("closing waits for what was sent, and ends what is left", async () => {
  const there = await server();
  const orders = client(there.endpoint);
  await orders.channel.ready(1, { timeoutMs: PATIENCE });
  const asked = orders.ask(note("answered"));
  await there.next();
  const closing = orders.close(PATIENCE);
  await failsWith(orders.ask(note("late")), "ShuttingDown", "NotExecuted");
  echo(await there.next());
  assert.equal((await asked).text, "answered");
  await closing;

  const other = client(there.endpoint);
  await other.channel.ready(1, { timeoutMs: PATIENCE });
  const stuck = failsWith(other.ask(note("stuck")), "ShuttingDown", "Unknown");
  const { from } = await there.next(1);
  await from.pause(true);
  await from.settled();
  const held = failsWith(other.ask(note("held")), "ShuttingDown", "NotExecuted");
  await other.close(0);
  await Promise.all([stuck, held]);
  await failsWith(other.channel.ready(), "ShuttingDown", "NotExecuted");

  const nobody = client("tcp://127.0.0.1:1");
  const waiting = failsWith(nobody.ask(note("x")), "ShuttingDown", "NotExecuted");
  await nobody.close();
  await waiting;
});

test("one-way messages that were accepted are read before the client is gone", async () => {
  const there = await server();
  const orders = client(there.endpoint);
  const texts = Array.from({ length: 500 }, (_, n) => `${n}`);
  await Promise.all(texts.map((text) => orders.tell(note(text))));
  await orders.close(PATIENCE);
  await until("all of them", () => there.came.length === 500);
  assert.deepEqual(there.came.map(textOf), texts);
});

test("a program that was busy for longer than a handshake may take reads first what has come meanwhile", async () => {
  await eventually("the first attempt succeeds", async () => {
    const there = await server();
    const events: ChannelEvent[] = [];
    const orders = client(there.endpoint, { onEvent: (event) => events.push(event) });
    const busy = performance.now() + 2_300;
    while (performance.now() < busy);
    await orders.channel.ready(1, { timeoutMs: PATIENCE });
    return events[0]?.type === "ready";
  });
});
