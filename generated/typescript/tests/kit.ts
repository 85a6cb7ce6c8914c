// What tests share. None of them sleeps: they wait for what is to happen, with a deadline that only a broken test reaches.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { CallError } from "../src/zlink/index.js";
import type { ErrorKind, Execution } from "../src/zlink/index.js";

/** A file of the repository. */
export function repository(path: string): string {
  return `${process.env["ZLINK_REPOSITORY"] ?? fileURLToPath(new URL("../../../../", import.meta.url))}/${path}`;
}

/** Waits until something holds. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!holds()) {
    assert.ok(performance.now() < deadline, `waited in vain for: ${what}`);
    await sleep(2);
  }
}

/** The error that a call fails with. */
export async function failure(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  return assert.fail("it should have failed");
}

/** Checks that a call fails so. */
export async function failsWith(call: Promise<unknown>, kind: ErrorKind, execution: Execution): Promise<CallError> {
  const error = await failure(call);
  assert.ok(error instanceof CallError, String(error));
  assert.deepEqual([error.kind, error.execution], [kind, execution], error.message);
  return error;
}
