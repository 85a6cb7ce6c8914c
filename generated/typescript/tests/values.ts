// Values of a message with every type, from a seed: the same in every language, as `generated/rust/tests/interop/values.rs`
// draws them. Fields are drawn in the order of their ids.

import type { Circle, Money, Point } from "../src/test_common.js";
import type { All, Event, Mixed, Small, Vec2 } from "../src/test_every_type.js";
import type { ActorRef } from "../src/zlink/index.js";

const LETTERS = ["a", "ß", "€", "😀", '"', "\\", " ", "0"];

/** The value of a seed. */
export function value(seed: number): All {
  return new Draw(BigInt(seed)).all(0);
}

/** A sequence of numbers from a seed: splitmix64. */
class Draw {
  #state: bigint;

  constructor(seed: bigint) {
    this.#state = seed;
  }

  #next(): bigint {
    const low = (number: bigint) => BigInt.asUintN(64, number);
    this.#state = low(this.#state + 0x9e3779b97f4a7c15n);
    let z = this.#state;
    z = low((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = low((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return z ^ (z >> 31n);
  }

  #below(count: number): number {
    return Number(this.#next() % BigInt(count));
  }

  #pick<T>(items: readonly [T, ...T[]]): T {
    return items[this.#below(items.length)] ?? items[0];
  }

  #unsigned(bits: number): bigint {
    switch (this.#below(4)) {
      case 0:
        return 0n;
      case 1:
        return BigInt.asUintN(bits, -1n);
      default:
        return BigInt.asUintN(bits, this.#next());
    }
  }

  #signed(bits: number): bigint {
    const most = BigInt.asUintN(bits - 1, -1n);
    switch (this.#below(4)) {
      case 0:
        return 0n;
      case 1:
        return most;
      case 2:
        return -most - 1n;
      default:
        return BigInt.asIntN(bits, this.#next());
    }
  }

  readonly #small = (bits: number): number => Number(this.#unsigned(bits));
  readonly #int = (bits: number): number => Number(this.#signed(bits));
  readonly #long = (): bigint => this.#signed(64);
  readonly #real = (): number => (this.#below(2001) - 1000) / 8;
  readonly #flag = (): boolean => this.#below(2) === 1;
  readonly #text = (): string => this.#times(5, () => LETTERS[this.#below(8)] ?? "").join("");
  readonly #blob = (): Uint8Array => new Uint8Array(this.#times(5, () => Number(this.#next() & 0xffn)));
  readonly #uuid = (): string => {
    const bytes = Buffer.alloc(16);
    bytes.writeBigUInt64LE(this.#next(), 0);
    bytes.writeBigUInt64LE(this.#next(), 8);
    return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  };
  readonly #id = (): string => `i${this.#text()}`;
  readonly #ref = (): ActorRef => ({
    id: this.#id(),
    generation: 1n + (this.#next() % (2n ** 63n - 1n)),
    mesh: `m${this.#text()}`,
    node: new Uint8Array([1, ...this.#blob()]),
  });
  readonly #kind = (): number => this.#pick([0, 1, 2, 9, 255]);
  readonly #currency = (): number => this.#pick([0, 978, 840, 7]);
  readonly #vec2 = (): Vec2 => ({ x: this.#real(), y: this.#real() });
  readonly #point = (): Point => ({ x: this.#int(32), y: this.#int(32) });
  readonly #mixed = (): Mixed => ({
    flag: this.#flag(),
    number: this.#real(),
    kind: this.#kind(),
    currency: this.#currency(),
    id: this.#uuid(),
    at: this.#long(),
    lasts: this.#long(),
    nested: this.#vec2(),
    point: this.#point(),
    tail: this.#small(8),
  });
  readonly #message = (): Small => ({ text: this.#text() });
  readonly #money = (): Money => ({ cents: this.#long(), currency: this.#currency() });
  readonly #circle = (): Circle => ({ centre: this.#point(), radius: this.#real() });

  #event(depth: number): Event {
    const kind = this.#below(3);
    if (kind === 0) return { kind: "Money", value: this.#money() };
    if (kind === 1 && depth < 2) return { kind: "All", value: this.all(depth + 1) };
    return { kind: "Small", value: this.#message() };
  }

  #times<T>(below: number, make: (index: number) => T): T[] {
    return Array.from({ length: this.#below(below) }, (_, index) => make(index));
  }

  #some<T>(make: () => T): T | undefined {
    return this.#flag() ? make() : undefined;
  }

  #many<T>(make: () => T): T[] {
    return this.#times(3, make);
  }

  #map<T>(make: () => T): Map<string, T> {
    return new Map(this.#times(3, (index) => [`k${index}`, make()] as const));
  }

  all(depth: number): All {
    return {
      aBool: this.#flag(),
      anI8: this.#int(8),
      anI16: this.#int(16),
      anI32: this.#int(32),
      anI64: this.#long(),
      aU8: this.#small(8),
      aU16: this.#small(16),
      aU32: this.#small(32),
      aU64: this.#unsigned(64),
      anF32: this.#real(),
      anF64: this.#real(),
      aString: this.#text(),
      someBytes: this.#blob(),
      aUuid: this.#uuid(),
      aTimestamp: this.#long(),
      aDuration: this.#long(),
      aSpotId: this.#some(this.#id),
      anActorId: this.#some(this.#id),
      aSpotRef: this.#some(this.#ref),
      anActorRef: this.#some(this.#ref),
      anEnum: this.#kind(),
      aStruct: this.#mixed(),
      aUnion: this.#some(() => this.#event(depth)),
      aMessage: this.#some(this.#message),
      requiredString: this.#text(),
      requiredMessage: this.#message(),
      requiredUnion: { kind: "Circle", value: this.#circle() },
      boolList: this.#many(this.#flag),
      numberList: this.#many(() => this.#small(16)),
      stringList: this.#many(this.#text),
      bytesList: this.#many(this.#blob),
      uuidList: this.#many(this.#uuid),
      timestampList: this.#many(this.#long),
      enumList: this.#many(this.#kind),
      structList: this.#many(this.#vec2),
      unionList: this.#many(() => this.#event(depth)),
      messageList: depth < 1 ? this.#many(() => this.all(depth + 1)) : [],
      spotIdList: this.#many(this.#id),
      actorRefList: this.#many(this.#ref),
      maybeBool: this.#some(this.#flag),
      maybeNumber: this.#some(this.#long),
      maybeFloat: this.#some(this.#real),
      maybeEnum: this.#some(this.#kind),
      maybeUuid: this.#some(this.#uuid),
      maybeTimestamp: this.#some(this.#long),
      numberMap: this.#map(() => this.#small(32)),
      stringMap: this.#map(this.#text),
      enumMap: this.#map(this.#kind),
      structMap: this.#map(this.#vec2),
      unionMap: this.#map(() => this.#event(depth)),
      messageMap: this.#map(this.#money),
    };
  }
}
