// Whether a link is alive: one probe at a time, and a limit that only its own answer moves. Pure: times are milliseconds
// that are handed in. It must not know sockets.

/** Between two probes. */
export const PROBE_INTERVAL_MS = 5_000;
/** Without an answered probe for this long, a link is dead. */
export const PROBE_LIMIT_MS = 15_000;

/** The probes of one link, from when it is ready. */
export class Liveness {
  #nextId = 1n;
  #outstanding: bigint | undefined;
  #nextProbe: number;
  #limit: number;

  constructor(now: number) {
    this.#nextProbe = now + PROBE_INTERVAL_MS;
    this.#limit = now + PROBE_LIMIT_MS;
  }

  /** Whether a probe waits for its answer. */
  get waits(): boolean {
    return this.#outstanding !== undefined;
  }

  /** The probe to send now: the one that waits for its answer, else a new one. */
  probe(now: number): bigint {
    this.#nextProbe = now + PROBE_INTERVAL_MS;
    this.#outstanding ??= this.#nextId;
    return this.#outstanding;
  }

  /** Looks at the clock. While the peer holds back on purpose, the limit does not run. */
  tick(now: number, held: boolean): "nothing" | "probe" | "expired" {
    if (held) this.#limit = now + PROBE_LIMIT_MS;
    if (now >= this.#limit) return "expired";
    return held || now < this.#nextProbe ? "nothing" : "probe";
  }

  /** Replies come: the answer to a probe may be behind more of them, which are under way or not read yet. */
  replied(now: number): void {
    this.#limit = now + PROBE_LIMIT_MS;
  }

  /** An answer came; tells whether it was the one that counts, the first to the outstanding probe. */
  answered(now: number, id: bigint): boolean {
    if (this.#outstanding !== id) return false;
    this.#outstanding = undefined;
    this.#nextId += 1n;
    this.#limit = now + PROBE_LIMIT_MS;
    return true;
  }
}
