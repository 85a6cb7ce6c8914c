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

/** For what must come, in milliseconds: on a busy machine it takes its time. */
export const PATIENCE = 60_000;

/** Waits until something holds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE;
  while (!(await holds())) {
    assert.ok(performance.now() < deadline, `waited in vain for: ${what}`);
    await sleep(2);
  }
}

/**
 * Tries something until it comes out as it should. For what depends on a short time: where the machine stands still for
 * longer, it comes out otherwise, but not every time.
 */
export async function eventually(what: string, comesOut: () => Promise<boolean>): Promise<void> {
  for (let times = 0; times < 20; times++) {
    if (await comesOut()) return;
  }
  assert.fail(`never: ${what}`);
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
