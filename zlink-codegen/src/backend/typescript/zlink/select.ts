// Which server takes the next call: smooth weighted round-robin. Pure; it must not know links.

import { Buffer } from "node:buffer";

/** A server that may be selected. */
export interface Candidate<T> {
  /** Its RID: accumulators are kept, and ties decided, by it. */
  readonly rid: Uint8Array;
  /** Its share of the calls, in proportion to the sum of all; above 0. */
  readonly weight: number;
  readonly target: T;
}

/** The one selection path of a channel. */
export class Selector<T> {
  /** By rising RID. */
  #members: { readonly candidate: Candidate<T>; credit: number }[] = [];

  /** Takes the candidates as they are now. Those that stay keep their credit, newcomers begin with none. */
  update(candidates: readonly Candidate<T>[]): void {
    const before = this.#members;
    this.#members = [...candidates]
      .sort((a, b) => Buffer.compare(a.rid, b.rid))
      .map((candidate) => {
        const known = before.find((member) => Buffer.compare(member.candidate.rid, candidate.rid) === 0);
        return { candidate, credit: known?.credit ?? 0 };
      });
  }

  /** How many there are. */
  get size(): number {
    return this.#members.length;
  }

  /** The next in turn. One that is not open is passed over while another is. */
  pick(isOpen: (target: T) => boolean): T | undefined {
    const open = this.#members.filter(({ candidate }) => isOpen(candidate.target));
    let total = 0;
    let best: { readonly candidate: Candidate<T>; credit: number } | undefined;
    for (const member of open.length === 0 ? this.#members : open) {
      member.credit += member.candidate.weight;
      total += member.candidate.weight;
      if (best === undefined || member.credit > best.credit) best = member;
    }
    if (best !== undefined) best.credit -= total;
    return best?.candidate.target;
  }
}
