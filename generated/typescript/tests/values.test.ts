// Two hundred values from their seeds: what Rust and flatc encoded is what is drawn here, and its bytes are those of Rust.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { All } from "../src/test_every_type.js";
import { value } from "./values.js";

const path = process.env["ZLINK_VALUES"];

test("two hundred values are the same in every language", { skip: path === undefined && "ZLINK_VALUES is unset" }, () => {
  const lines = readFileSync(path ?? "", "utf8").trimEnd().split("\n");
  assert.equal(lines.length, 200);
  lines.forEach((line, seed) => {
    const [rust, flatc] = line.split(" ");
    const drawn = value(seed);
    for (const hex of [rust, flatc]) assert.deepEqual(All.decode(Buffer.from(hex ?? "", "hex")), drawn, `seed ${seed}`);
    assert.equal(Buffer.from(All.encode(drawn)).toString("hex"), rust, `seed ${seed}`);
  });
});
