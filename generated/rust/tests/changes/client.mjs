// Calls servers of the other version, as a list in JSON says, and holds what comes of it against the list. The modules of
// `before` and `after` are what was generated from the two schemas. Each call has an hour, and a minute to end.

import { readFileSync } from "node:fs";
import { argv, exit } from "node:process";
import { inspect, isDeepStrictEqual } from "node:util";

import * as newer from "./out/after/changes.js";
import * as newerZlink from "./out/after/zlink/index.js";
import * as older from "./out/before/changes.js";
import * as olderZlink from "./out/before/zlink/index.js";

const sides = { before: { changes: older, zlink: olderZlink }, after: { changes: newer, zlink: newerZlink } };
const bytes = (hex) => new Uint8Array(Buffer.from(hex, "hex"));
const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const atOnce = () => AbortSignal.timeout(60_000);
const HOUR_MS = 3_600_000;

/** Tells whether a call ends with that kind of error, or passes the reply on. */
async function ends({ zlink }, call, asked, fits) {
  try {
    const reply = await asked;
    return (call.end === null && fits(reply)) || reply;
  } catch (error) {
    return (error instanceof zlink.CallError && error.kind === call.end) || error;
  }
}

const [endpoint, path] = argv.slice(2);
const calls = JSON.parse(readFileSync(path, "utf8"));
const wrong = [];
const channels = Object.fromEntries(
  Object.entries(sides).map(([side, { zlink }]) => [side, new zlink.Channel("rows", { connect: endpoint })]),
);
for (const call of calls.rows) {
  const side = sides[call.side];
  const type = side.changes[call.message];
  const options = { timeoutMs: HOUR_MS, signal: atOnce() };
  const asked = channels[call.side].request(call.packet, type, type, undefined, type.decode(bytes(call.sent)), options);
  const came = await ends(side, call, asked, (reply) => isDeepStrictEqual(reply, type.decode(bytes(call.back))));
  if (came !== true) wrong.push(`${call.packet} from ${call.side}: ${inspect(came)}, not ${call.end}`);
}
for (const channel of Object.values(channels)) await channel.close(0);
for (const call of calls.services) {
  const side = sides[call.side];
  const client = side.changes[`${camel(call.service)}Client`]({ connect: call.endpoint });
  const options = { timeoutMs: HOUR_MS, signal: atOnce(), metadata: call.metadata };
  const came = await ends(side, call, client[camel(call.method)](call.fields, options), (reply) => reply.word === call.word);
  if (came !== true) wrong.push(`${call.service}.${call.method} from ${call.side}: ${inspect(came)}, not ${call.end}`);
  await client.close(0);
}
console.log(wrong.length > 0 ? wrong.join("\n") : `${calls.rows.length} and ${calls.services.length} calls`);
exit(wrong.length > 0 ? 1 : 0);
