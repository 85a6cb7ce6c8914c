// A Rust host in a process of its own.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

import { PATIENCE, repository, until } from "./kit.js";

const program = process.env["ZLINK_INTEROP_HOST"] ?? repository("target/debug/interop-host");

/** How a host is started; `jobs` is what it queues before it pauses its clients. */
export interface HostOptions {
  readonly version?: "old" | "next";
  readonly endpoint?: string;
  readonly name?: string;
  readonly jobs?: number;
  readonly maxMessage?: number;
}

export class Host {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #lines: string[] = [];
  #endpoint = "";
  #ended = false;

  private constructor(process: ChildProcessWithoutNullStreams) {
    this.#process = process;
    createInterface(process.stdout).on("line", (line) => this.#lines.push(line));
    process.on("exit", () => (this.#ended = true));
  }

  /** Starts one that listens. */
  static async start(options: HostOptions = {}): Promise<Host> {
    const { version = "old", endpoint = "tcp://127.0.0.1:0", name = "host", jobs, maxMessage } = options;
    const more = [
      ...(jobs === undefined ? [] : [`jobs=${jobs}`]),
      ...(maxMessage === undefined ? [] : [`max_message=${maxMessage}`]),
    ];
    for (const deadline = performance.now() + PATIENCE; ; ) {
      const process = spawn(program, [version, endpoint, name, ...more]);
      process.stderr.resume();
      const host = new Host(process);
      await until("it listens", () => host.#lines.length > 0 || host.#ended);
      if (host.#lines.length > 0) {
        host.#endpoint = (await host.#line()).slice("listening ".length);
        return host;
      }
      // A port that was free again may be somebody else's for a moment.
      assert.ok(options.endpoint !== undefined && performance.now() < deadline, "the host ended");
    }
  }

  get endpoint(): string {
    return this.#endpoint;
  }

  /** The next line that it says. */
  async #line(): Promise<string> {
    await until("a line from the host", () => this.#lines.length > 0 || this.#ended);
    return this.#lines.shift() ?? assert.fail("the host ended");
  }

  async #tell(command: string): Promise<string> {
    this.#process.stdin.write(`${command}\n`);
    return await this.#line();
  }

  /** Lets the handlers go on that were asked to hold. */
  async release(): Promise<void> {
    assert.equal(await this.#tell("release"), "done");
  }

  /** The numbers that handlers have seen. */
  async seen(): Promise<readonly number[]> {
    return JSON.parse(await this.#tell("seen")) as readonly number[];
  }

  /** Begins to end in order: what it has accepted is finished. */
  async drain(): Promise<void> {
    assert.equal(await this.#tell("drain"), "draining");
  }

  /** Ends it without a word. */
  async kill(): Promise<void> {
    if (this.#ended) return;
    const exit = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await exit;
  }
}
