"""Values of a message with every type, from a seed: the same in every language (see `generated/rust/tests/interop/values.rs`)."""

from __future__ import annotations

import datetime
import typing
import uuid

from zlink_generated.test_common import Circle, Currency, Money, Point
from zlink_generated.test_every_type import All, Event, Kind, Mixed, Small, Vec2
from zlink_generated.zlink import ActorRef, SpotRef, Timestamp

T = typing.TypeVar("T")
MASK = (1 << 64) - 1
LETTERS = ["a", "ß", "€", "😀", '"', "\\", " ", "0"]


class Draw:
    """A sequence of numbers from a seed: splitmix64."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, count: int) -> int:
        return self.next() % count

    def unsigned(self, bits: int) -> int:
        kind = self.below(4)
        if kind == 0:
            return 0
        if kind == 1:
            return (1 << bits) - 1
        return self.next() & ((1 << bits) - 1)

    def signed(self, bits: int) -> int:
        kind = self.below(4)
        if kind == 0:
            return 0
        if kind == 1:
            return (1 << (bits - 1)) - 1
        if kind == 2:
            return -(1 << (bits - 1))
        number = self.next() & ((1 << bits) - 1)
        return number - (1 << bits) if number >> (bits - 1) else number

    def real(self) -> float:
        return (self.below(2001) - 1000) / 8

    def flag(self) -> bool:
        return self.below(2) == 1

    def text(self) -> str:
        return "".join(LETTERS[self.below(len(LETTERS))] for _ in range(self.below(5)))

    def blob(self) -> bytes:
        return bytes(self.next() & 0xFF for _ in range(self.below(5)))

    def uuid(self) -> uuid.UUID:
        low, high = self.next(), self.next()
        return uuid.UUID(bytes=low.to_bytes(8, "little") + high.to_bytes(8, "little"))

    def timestamp(self) -> Timestamp:
        return Timestamp(self.signed(64))

    def duration(self) -> datetime.timedelta:
        return datetime.timedelta(microseconds=self.signed(64))

    def identity(self) -> str:
        return "i" + self.text()

    def reference(self) -> tuple[str, int, str, bytes]:
        identity = self.identity()
        generation = 1 + self.next() % ((1 << 63) - 1)
        mesh = "m" + self.text()
        return identity, generation, mesh, b"\x01" + self.blob()

    def kind(self) -> Kind | int:
        number = [0, 1, 2, 9, 255][self.below(5)]
        return Kind(number) if number in Kind._value2member_map_ else number

    def currency(self) -> Currency | int:
        return [Currency.UNSPECIFIED, Currency.EUR, Currency.USD, 7][self.below(4)]

    def vec2(self) -> Vec2:
        x = self.real()
        return Vec2(x=x, y=self.real())

    def point(self) -> Point:
        x = self.signed(32)
        return Point(x=x, y=self.signed(32))

    def mixed(self) -> Mixed:
        return Mixed(
            flag=self.flag(),
            number=self.real(),
            kind=self.kind(),
            currency=self.currency(),
            id=self.uuid(),
            at=self.timestamp(),
            lasts=self.duration(),
            nested=self.vec2(),
            point=self.point(),
            tail=self.unsigned(8),
        )

    def small(self) -> Small:
        return Small(text=self.text())

    def money(self) -> Money:
        cents = self.signed(64)
        return Money(cents=cents, currency=self.currency())

    def event(self, depth: int) -> Event:
        kind = self.below(3)
        if kind == 0:
            return self.money()
        if kind == 1 and depth < 2:
            return self.all(depth + 1)
        return self.small()

    def circle(self) -> Circle:
        centre = self.point()
        return Circle(centre=centre, radius=self.real())

    def some(self, make: typing.Callable[[], T]) -> T | None:
        return make() if self.flag() else None

    def many(self, make: typing.Callable[[], T]) -> list[T]:
        return [make() for _ in range(self.below(3))]

    def map(self, make: typing.Callable[[], T]) -> dict[str, T]:
        return {f"k{index}": make() for index in range(self.below(3))}

    def all(self, depth: int) -> All:
        """Fields are drawn in the order of their ids."""
        return All(
            a_bool=self.flag(),
            an_i8=self.signed(8),
            an_i16=self.signed(16),
            an_i32=self.signed(32),
            an_i64=self.signed(64),
            a_u8=self.unsigned(8),
            a_u16=self.unsigned(16),
            a_u32=self.unsigned(32),
            a_u64=self.unsigned(64),
            an_f32=self.real(),
            an_f64=self.real(),
            a_string=self.text(),
            some_bytes=self.blob(),
            a_uuid=self.uuid(),
            a_timestamp=self.timestamp(),
            a_duration=self.duration(),
            a_spot_id=self.some(self.identity),
            an_actor_id=self.some(self.identity),
            a_spot_ref=self.some(lambda: SpotRef(*self.reference())),
            an_actor_ref=self.some(lambda: ActorRef(*self.reference())),
            an_enum=self.kind(),
            a_struct=self.mixed(),
            a_union=self.some(lambda: self.event(depth)),
            a_message=self.some(self.small),
            required_string=self.text(),
            required_message=self.small(),
            required_union=self.circle(),
            bool_list=self.many(self.flag),
            number_list=self.many(lambda: self.unsigned(16)),
            string_list=self.many(self.text),
            bytes_list=self.many(self.blob),
            uuid_list=self.many(self.uuid),
            timestamp_list=self.many(self.timestamp),
            enum_list=self.many(self.kind),
            struct_list=self.many(self.vec2),
            union_list=self.many(lambda: self.event(depth)),
            message_list=self.many(lambda: self.all(depth + 1)) if depth < 1 else [],
            spot_id_list=self.many(self.identity),
            actor_ref_list=self.many(lambda: ActorRef(*self.reference())),
            maybe_bool=self.some(self.flag),
            maybe_number=self.some(lambda: self.signed(64)),
            maybe_float=self.some(self.real),
            maybe_enum=self.some(self.kind),
            maybe_uuid=self.some(self.uuid),
            maybe_timestamp=self.some(self.timestamp),
            number_map=self.map(lambda: self.unsigned(32)),
            string_map=self.map(self.text),
            enum_map=self.map(self.kind),
            struct_map=self.map(self.vec2),
            union_map=self.map(lambda: self.event(depth)),
            message_map=self.map(self.money),
        )


def value(seed: int) -> All:
    """The value of a seed."""
    return Draw(seed).all(0)
