// One call on its way out, and its one end. It must not know sockets or which server is picked.

import type { Bytes } from "./codec.js";
import { CallError } from "./errors.js";
import type { Link } from "./link.js";
import type { Operation } from "./record.js";

/** What a call is made of. */
export interface CallParts {
  readonly operation: Operation;
  /** The packet name, as text. */
  readonly packet: string;
  readonly metadata: Bytes;
  readonly payload: Bytes;
  /** How long it may take as a whole, for a request; how long it may wait, for a one-way message that has a limit. */
  readonly timeoutMs: number | undefined;
  readonly isRequest: boolean;
  readonly signal: AbortSignal | undefined;
}

/** Who a call belongs to. */
export interface CallOwner {
  /** Is told once that it has ended. */
  forget(call: Call): void;
  /** Why nobody could be given it in time. */
  missed(): string;
}

/** A call. Whatever ends it first is its end; what comes later changes nothing. */
export class Call {
  readonly parts: CallParts;
  /** When it ends at the latest, as `performance.now()` counts. */
  readonly deadline: number | undefined;
  /** The link whose queue or table holds it. */
  link: Link | undefined;
  /** Its correlation, once a link has taken it. */
  correlation: number | undefined;
  #ended = false;
  /** A link has taken it: a handler may run. */
  #taken = false;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #resolve: (payload: Bytes) => void;
  readonly #reject: (error: unknown) => void;
  readonly #owner: CallOwner;

  constructor(
    parts: CallParts,
    resolve: (payload: Bytes) => void,
    reject: (error: unknown) => void,
    owner: CallOwner,
  ) {
    this.parts = parts;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#owner = owner;
    const { timeoutMs } = parts;
    this.deadline = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
    this.#timer = timeoutMs === undefined ? undefined : setTimeout(() => this.#expired(), timeoutMs);
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** What is left of its time in whole milliseconds, at least 1. */
  timeLeft(): number {
    return Math.max(1, Math.floor((this.deadline ?? 0) - performance.now()));
  }

  /** A link has taken it, and it can be sent to nobody else. That ends a one-way message. */
  taken(): void {
    this.#taken = true;
    if (!this.parts.isRequest && this.#end()) this.#resolve(new Uint8Array());
  }

  /** Its reply came. */
  replied(payload: Bytes): void {
    if (this.#end()) this.#resolve(payload);
  }

  /** Its signal was aborted: whoever waits for it is told why, and a link is no more to send it. */
  cancelled(reason: unknown): void {
    if (this.#end()) this.#reject(reason);
  }

  /** It failed, with an error that says whether it ran, or was made wrongly. */
  failed(error: Error): void {
    if (this.#end()) this.#reject(error);
  }

  /** Something ended it that does not know how far it came. */
  stopped(kind: "DeadlineExceeded" | "NotFound" | "ShuttingDown" | "Unavailable", text: string): void {
    this.failed(new CallError(kind, this.#taken ? "Unknown" : "NotExecuted", text));
  }

  #expired(): void {
    this.stopped("DeadlineExceeded", this.#taken ? "no reply came in time" : this.#owner.missed());
  }

  #end(): boolean {
    if (this.#ended) return false;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#owner.forget(this);
    return true;
  }
}
