// How long to wait before the next attempt: exponential with full jitter, or about a minute. Pure; `random` is from 0 up
// to 1.

const FIRST_MS = 50;
const MOST_MS = 5_000;

/** The pauses between attempts on one endpoint. */
export class Backoff {
  #failures = 0;

  /** An attempt succeeded: the next failure waits briefly again. */
  reset(): void {
    this.#failures = 0;
  }

  /** The pause after one more failure: evenly spread from 1 ms to a bound that doubles up to 5 s. */
  next(random: number): number {
    const bound = Math.min(FIRST_MS * 2 ** Math.min(this.#failures, 10), MOST_MS);
    this.#failures += 1;
    return Math.max(1, random * bound);
  }
}

/** The pause after a refusal that stands until somebody changes something: 45 s to 75 s. */
export function afterRefusal(random: number): number {
  return 45_000 + random * 30_000;
}
