"""Records against the golden vectors, and what the reader and writer refuse."""

from __future__ import annotations

import dataclasses
import inspect
import json
import pathlib
import random
import struct
import unittest

from zlink_generated import def_ as words
from zlink_generated import interop
from zlink_generated.interop import Bounded
from zlink_generated.test_every_type import All, Small
from zlink_generated.zlink import ArgumentError, CallError, DecodeError, EncodeError, Message, Timestamp, UnknownMember, decode, encode
from zlink_generated.zlink import wire
from zlink_generated.zlink.metadata import F32_TEXT, F64_TEXT, U8_TEXT, Key, encode_metadata
from zlink_generated.zlink.protocol import Hello, Reject, Update

from .values import value

VECTORS = pathlib.Path(__file__).parents[3] / "schemas/zlink/vectors/records.json"


def vectors() -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(VECTORS.read_text())
    return found


class Records(unittest.TestCase):
    """What a client receives is read, and what it sends is written, as the golden vectors say."""

    def test_every_vector(self) -> None:
        seen: set[str] = set()
        for vector in vectors():
            name, record = str(vector["name"]), bytes.fromhex(str(vector["hex"]))
            with self.subTest(name):
                known = vector["is"]
                assert isinstance(known, dict)
                if "refused" not in known:
                    seen.add(self.known(name, record, known))
                elif known["correlation"] is not None:
                    reply = wire.parse(record)
                    assert isinstance(reply, wire.Reply) and isinstance(reply.result, CallError)
                    self.assertEqual((reply.correlation, reply.result.message), (known["correlation"], known["refused"]))
                    seen.add("unusable reply")
                else:
                    with self.assertRaises(wire.ProtocolError):
                        wire.parse(record)
                    seen.add("refused")
        wanted = {"reply", "probe", "flow", "admit", "reject", "update", "hello", "call", "elsewhere"}
        self.assertEqual(seen, wanted | {"refused", "unusable reply"})

    def known(self, name: str, record: bytes, known: dict[str, object]) -> str:
        if "call" in known:
            return self.call(record, known)
        if "reply" in known:
            reply = wire.parse(record)
            assert isinstance(reply, wire.Reply)
            self.assertEqual(reply.correlation, known["reply"])
            error = known["error"]
            if isinstance(reply.result, CallError):
                assert isinstance(error, dict)
                self.assertEqual((reply.result.kind, reply.result.message), (error["number"], error["text"]))
                executed = reply.result.execution.name.replace("_", "").lower()
                self.assertEqual(executed, str(error["executed"]).lower())
            else:
                self.assertEqual(reply.result.hex(), known["payload_hex"])
            return "reply"
        for kind, is_answer in (("probe", False), ("probe_ack", True)):
            if kind in known:
                self.assertEqual(wire.parse(record), wire.Probe(int(str(known[kind])), is_answer))
                self.assertEqual(wire.probe(int(str(known[kind])), answer=is_answer), record)
                return "probe"
        flow = known.get("flow")
        if isinstance(flow, dict):
            self.assertEqual(wire.parse(record), wire.Flow(flow["version"], flow["paused"]))
            return "flow"
        return self.service(name, record, bytes.fromhex(str(known["body_hex"])))

    def service(self, name: str, record: bytes, body: bytes) -> str:
        of: dict[str, type[Message]] = {"hello": Hello, "admit": Hello, "reject": Reject, "update": Update}
        # What only another side says in it is read all the same.
        name = name.removesuffix(" of an Object Server")
        if name not in of:
            # Of a mesh: no client may receive it.
            with self.assertRaises(wire.ProtocolError):
                wire.parse(record)
            return "elsewhere"
        message = decode(of[name], body)
        self.assertEqual(encode(message), body, "byte for byte as Rust")
        if name == "hello":
            self.assertEqual(wire.service(wire.RecordKind.HELLO, message), record)
            return name
        parsed = wire.parse(record)
        self.assertEqual(parsed.hello if isinstance(parsed, wire.Admit) else parsed, message)
        return name

    def call(self, record: bytes, known: dict[str, object]) -> str:
        # A client calls channels, with FlatBuffers, and traces nothing.
        if known["call"] != "channel" or known["content_type"] or known["flow_hex"]:
            return "elsewhere"
        operation, names = known["operation"], b""
        if isinstance(operation, dict):
            names = wire.names(operation["channel"].encode(), operation["packet"].encode())
            operation = wire.NAMED
        metadata, payload = (bytes.fromhex(str(known[part])) for part in ("metadata_hex", "payload_hex"))
        rest = wire.tail(names, metadata, payload)
        correlation = known["correlation"]
        if correlation is None:
            self.assertEqual(wire.send(int(str(operation)), rest), record)
        else:
            numbers = [int(str(number)) for number in (operation, correlation, known["timeout_ms"])]
            self.assertEqual(wire.request(*numbers, rest), record)
        if metadata:
            self.assertEqual(encode_metadata({"tenant": "acme", "empty": ""}), metadata)
        return "call"

    def test_frames_are_walked_to_their_end_and_no_further(self) -> None:
        one, two = wire.probe(1, answer=True), wire.probe(2, answer=True)
        self.assertEqual(list(wire.records(wire.entry(one) + wire.entry(two), 100)), [one, two])
        self.assertEqual(list(wire.records(b"", 100)), [])
        for frame in (b"\x01", b"\0\0\0\0", b"\x05\0\0\0abcd", wire.entry(bytes(101)), wire.entry(one) + b"\x01\0\0"):
            with self.assertRaises(wire.ProtocolError):
                list(wire.records(frame, 100))


class Codec(unittest.TestCase):
    def test_damaged_bytes_are_a_value_or_an_error(self) -> None:
        dice = random.Random(7)
        whole = [encode(value(seed)) for seed in range(10)]
        refused = 0
        for _ in range(1000):
            data = bytearray(dice.choice(whole))
            for _ in range(dice.randrange(1, 8)):
                data[dice.randrange(len(data))] = dice.choice((0, 0xFF, 0x7F, dice.randrange(256)))
            if dice.random() < 0.1:
                del data[dice.randrange(len(data)) :]
            try:
                decode(All, bytes(data))
            except DecodeError:
                refused += 1
        self.assertGreater(refused, 300)
        for data in (b"", b"\0", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x04\0\0\0\0\0\0\0"):
            with self.assertRaises(DecodeError):
                decode(All, data)

    def test_what_is_refused_is_named_by_its_path(self) -> None:
        least = value(0)
        least.message_list = [value(1)]
        least.message_list[0].a_string = "x" * 65
        with self.assertRaises(EncodeError) as raised:
            encode(least)
        self.assertEqual(str(raised.exception), "message_list[0].a_string has 65, more than its maximum of 64")
        least = value(0)
        least.union_list = [Small(), UnknownMember(9)]
        with self.assertRaises(EncodeError) as raised:
            encode(least)
        self.assertEqual(raised.exception.field, "union_list[1]")
        for name, wrong in (
            ("a_bool", 1),
            ("an_i8", 128),
            ("a_u64", -1),
            ("an_f32", 1e300),
            ("a_string", b"x"),
            ("a_string", "\ud800"),
            ("some_bytes", 3),
            ("a_timestamp", Timestamp(1 << 63)),
            ("a_spot_id", ""),
            ("a_spot_id", "a\0"),
            ("a_message", Bounded()),
            ("a_union", Bounded()),
            ("a_struct", Small()),
            ("number_list", [1, 65536]),
        ):
            least = value(0)
            setattr(least, name, wrong)
            with self.assertRaises(EncodeError) as raised:
                encode(least)
            self.assertTrue(raised.exception.field.startswith(name), str(raised.exception))

    def test_a_number_too_long_to_be_shown_is_refused_like_any_other(self) -> None:
        for number in (10**5000, -(10**5000)):
            with self.assertRaises(EncodeError) as raised:
                encode(interop.Order(number=number))
            self.assertEqual(raised.exception.field, "number")

    def test_numbers_in_metadata_are_those_of_their_type(self) -> None:
        ratio, share = Key("ratio", F32_TEXT), Key("share", F64_TEXT)
        for value_of_it, text in (
            (0.1, "0.1"),
            (struct.unpack("<f", struct.pack("<f", 0.1))[0], "0.1"),
            (16777217.0, "16777216"),
            (3.4028234663852886e38, "340282350000000000000000000000000000000"),
            (1e-45, f"0.{'0' * 44}1"),
            (-0.0, "-0"),
            (float("nan"), "NaN"),
            (float("-inf"), "-inf"),
        ):
            self.assertEqual(ratio(value_of_it), ("ratio", text))
        self.assertEqual(share(16777217.0), ("share", "16777217"))
        for key, wrong in ((ratio, 1e300), (share, 10**400), (ratio, 10**5000), (share, 10**5000)):
            with self.assertRaises(ArgumentError):
                key(wrong)
        for text in (" 1", "1_0", "\u0663", ""):
            for key in (ratio, share, Key("count", U8_TEXT)):
                with self.assertRaises(ValueError):
                    key.read(text)

    def test_what_is_nested_too_deep_is_refused_both_ways(self) -> None:
        def nested(depth: int) -> All:
            inner = value(0)
            inner.message_list, inner.union_list, inner.union_map, inner.a_union = [], [], {}, None
            if depth:
                inner.message_list = [nested(depth - 1)]
            return inner

        # A value has two tables of its own below it.
        self.assertEqual(decode(All, encode(nested(60))), nested(60))
        with self.assertRaises(EncodeError):
            encode(nested(64))

    def test_names_that_are_words_of_python_are_names_like_any_other(self) -> None:
        every = {field.name: index for index, field in enumerate(dataclasses.fields(words.Import))}
        message = words.Import(**every)
        self.assertEqual(decode(words.Import, encode(message)), message)
        self.assertEqual((message.class_, message.none), (every["class_"], every["none"]))
        either = words.Holder(value=words.None_(), self_=words.True_(), list_=[words.Exception()], dict_={"a": words.None_()})
        self.assertEqual(decode(words.Holder, encode(either)), either)
        self.assertTrue(inspect.iscoroutinefunction(words.ClassClient.import_))
        self.assertTrue(inspect.iscoroutinefunction(words.ClassClient.close_))
        self.assertEqual((words.Words.CLASS, words.Words.NONE, words.Words.MRO), (1, 2, 3))


if __name__ == "__main__":
    unittest.main()
