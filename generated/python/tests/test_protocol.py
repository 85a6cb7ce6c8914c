"""The client protocol, rule by rule, against a server by hand."""

from __future__ import annotations

import asyncio
import time
import typing
import unittest
from unittest import mock

from zlink_generated.interop import Answer, InteropClient, Order
from zlink_generated.zlink import ErrorKind, Execution, decode, encode, wire
from zlink_generated.zlink import client as clients
from zlink_generated.zlink import link as links
from zlink_generated.zlink.protocol import (
    ChannelServer,
    Hello,
    NodeState,
    ObjectRole,
    ProbeHead__codec,
    RecordKind,
    Reject,
    RejectReason,
    Topology,
    Update,
)

from .kit import PATIENCE, Case
from .server import Server, description, flow, reply, service


class Protocol(Case):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        # Links do not end, and say nothing by themselves, however long a busy machine takes for a test.
        times = {"HANDSHAKE_TIME": PATIENCE, "PROBE_INTERVAL": 10 * PATIENCE, "PROBE_LIMIT": 10 * PATIENCE}
        for patch in (mock.patch.object(clients, "MOST_PAUSE", 0.02), mock.patch.multiple(links, **times)):
            patch.start()
            self.addCleanup(patch.stop)

    async def server(self) -> Server:
        server = Server()
        self.addCleanup(server.close)
        return server

    async def linked(self, **changes: typing.Any) -> tuple[Server, InteropClient]:
        """A server, and a client that it has admitted."""
        server = await self.server()
        client = await self.client(server.endpoint, servers=0)
        await server.admit(**changes)
        await client.ready(timeout=PATIENCE)
        return server, client

    def ask(self, client: InteropClient, number: int = 0) -> asyncio.Task[Answer]:
        return asyncio.create_task(client.ask(Order(number=number), timeout=PATIENCE))

    async def test_hello_comes_first_and_alone(self) -> None:
        server = await self.server()
        client = await self.client(server.endpoint, servers=0, security_identity="blue", max_message=5000)
        waiting = self.ask(client)
        hello = await server.hear_service(RecordKind.HELLO, Hello)
        rid = hello.rid
        self.assertTrue(1 <= len(rid) <= 255 and hello.generation)
        wanted = Hello(
            topology=Topology.CLIENT_SERVER,
            scope="interop",
            rid=rid,
            generation=hello.generation,
            revision=1,
            role=ObjectRole.NONE,
            security_identity="blue",
            max_message=5000,
            state=NodeState.SERVING,
        )
        self.assertEqual(hello, wanted)
        await server.hears_nothing(0.2)
        await server.say_service(RecordKind.ADMIT, description(security_identity="blue"))
        head, _ = await server.hear_request()
        await server.say(reply(head.correlation, encode(Answer(who="x"))))
        self.assertEqual((await waiting).who, "x")

    async def test_operations_are_named_by_number_where_they_are_listed_for_the_channel(self) -> None:
        server, client = await self.linked()
        call = self.ask(client, 5)
        head, rest = await server.hear_request()
        self.assertEqual((head.operation, head.flags, head.major, head.reserved), (1, 0, 1, 0))
        self.assertEqual(decode(Order, rest).number, 5)
        self.assertTrue(0 < head.timeout_ms <= PATIENCE * 1000)
        hurried = asyncio.create_task(client.hurry(Order(number=6), timeout=PATIENCE))
        named, rest = await server.hear_request()
        text = wire.names(b"interop", b"interop.interop.hurry")
        self.assertEqual((named.operation, rest[: len(text)]), (wire.NAMED, text))
        self.assertNotEqual(named.correlation, head.correlation)
        # Out of order, with a reply that nobody waits for between them.
        await server.say(reply(named.correlation, encode(Answer(number=6))), reply(99, b"?"))
        await server.say(reply(head.correlation, encode(Answer(number=5))))
        self.assertEqual(((await hurried).number, (await call).number), (6, 5))

    async def test_records_are_taken_however_frames_are_cut(self) -> None:
        server, client = await self.linked()
        calls = [self.ask(client, number) for number in range(4)]
        heads = [(await server.hear_request())[0] for _ in calls]
        one, two, three, four = (wire.entry(reply(head.correlation, encode(Answer(number=7)))) for head in heads)
        await server.say_frames(b"", one + wire.entry(wire.probe(3, answer=False)) + two, b"", three)
        await server.say_frames(four)
        self.assertEqual([(await call).number for call in calls], [7] * 4)
        self.assertEqual(await server.hear(), wire.probe(3, answer=True))

    async def test_optional_blocks_are_skipped(self) -> None:
        server, client = await self.linked()
        call = self.ask(client)
        head, _ = await server.hear_request()
        record = bytearray(reply(head.correlation, b"\x02\x00ab\x01\x00c" + encode(Answer(number=8))))
        record[3] = 0b101
        await server.say(bytes(record))
        self.assertEqual((await call).number, 8)

    async def test_a_paused_link_takes_nothing_and_answers_probes(self) -> None:
        server, client = await self.linked()
        await server.say(flow(5, paused=True))
        await self.until("it is heard", lambda: client.servers()[0].paused)
        call, told = self.ask(client, 1), asyncio.create_task(client.tell(Order(number=2)))
        await server.say(flow(4, paused=False), wire.probe(9, answer=False))
        self.assertEqual(await server.hear(), wire.probe(9, answer=True))
        await server.hears_nothing(0.2)
        self.assertFalse(told.done())
        await server.say(flow(6, paused=False))
        head, _ = await server.hear_request()
        await server.say(reply(head.correlation, encode(Answer(number=1))))
        await call
        await told
        self.assertEqual((await server.hear())[1], RecordKind.CHANNEL_SEND)

    async def test_a_paused_server_is_passed_over_while_another_is_not(self) -> None:
        (one, client) = await self.linked()
        two = await self.server()
        both = await self.client(one.endpoint, two.endpoint, servers=0)
        await client.close()
        await one.admit()
        await two.admit(rid=b"other")
        await both.ready(2, timeout=PATIENCE)
        await one.say(flow(1, paused=True))
        await self.until("it is heard", lambda: both.servers()[0].paused)
        calls = [self.ask(both, number) for number in range(3)]
        for _ in calls:
            head, _ = await two.hear_request()
            await two.say(reply(head.correlation, encode(Answer())))
        await asyncio.gather(*calls)
        await one.hears_nothing(0.1)

    async def test_an_admit_that_is_not_right_is_rejected_with_its_reason(self) -> None:
        server = await self.server()
        client = await self.client(server.endpoint, servers=0)
        channel = ChannelServer(name="interop", weight=100)
        wrong: list[tuple[dict[str, typing.Any], RejectReason]] = [
            ({"topology": Topology.ROUTE_MESH}, RejectReason.TOPOLOGY),
            ({"scope": "other"}, RejectReason.CHANNEL),
            ({"channels": []}, RejectReason.CHANNEL),
            ({"channels": [channel, ChannelServer(name="more")]}, RejectReason.CHANNEL),
            ({"security_identity": "red"}, RejectReason.SECURITY_IDENTITY),
            ({"capabilities": ["future"]}, RejectReason.CAPABILITY),
            ({"generation": 0}, RejectReason.INVALID_DESCRIPTOR),
            ({"revision": 0}, RejectReason.INVALID_DESCRIPTOR),
            ({"rid": b""}, RejectReason.INVALID_DESCRIPTOR),
            ({"state": NodeState.UNSPECIFIED}, RejectReason.INVALID_DESCRIPTOR),
            ({"channels": [ChannelServer(name="interop", weight=10_001)]}, RejectReason.INVALID_DESCRIPTOR),
            ({"max_message": 4095}, RejectReason.RESOURCE_LIMIT),
        ]
        for changes, reason in wrong:
            with self.subTest(str(changes)):
                await server.admit(**changes)
                rejected = await server.hear_service(RecordKind.REJECT, Reject)
                self.assertEqual(rejected.reason, reason)
                self.assertTrue(rejected.text)
        await server.admit()
        await client.ready(timeout=PATIENCE)

    async def test_a_reject_is_told_to_whoever_asks_and_tried_again(self) -> None:
        server = await self.server()
        client = await self.client(server.endpoint, servers=0)
        await server.hear_service(RecordKind.HELLO, Hello)
        await server.say_service(RecordKind.REJECT, Reject(reason=RejectReason.NOT_SERVING, text="closed on Sundays"))
        await self.until("it is heard", lambda: "NOT_SERVING: closed on Sundays" in str(client.servers()[0].trouble))
        await server.admit()
        await client.ready(timeout=PATIENCE)
        self.assertIsNone(client.servers()[0].trouble)

    async def test_calls_wait_for_no_endpoint_that_is_something_else_until_it_is_right(self) -> None:
        renamed, mesh = await self.server(), await self.server()
        client = await self.client(renamed.endpoint, mesh.endpoint, servers=0, timeout=PATIENCE)
        call = asyncio.create_task(client.ask(Order(number=1)))
        send = asyncio.create_task(client.tell(Order(number=2)))
        await renamed.hear_service(RecordKind.HELLO, Hello)
        await renamed.say_service(RecordKind.REJECT, Reject(reason=RejectReason.CHANNEL, text="this is another channel"))
        await self.until("it is heard", lambda: "another channel" in str(client.servers()[0].trouble))
        self.assertFalse(call.done() or send.done(), "the other endpoint has not answered yet")
        await mesh.hear_service(RecordKind.HELLO, Hello)
        await mesh.say_service(RecordKind.REJECT, Reject(reason=RejectReason.TOPOLOGY, text="this is a mesh"))
        for task in (call, send, asyncio.create_task(client.ask(Order(number=3)))):
            error = await self.fails(task, ErrorKind.NOT_FOUND, Execution.NOT_EXECUTED, "CHANNEL: this is another channel")
            self.assertIn("TOPOLOGY: this is a mesh", str(error))
        # It goes on to ask, and who refuses for now may serve soon.
        await mesh.hear_service(RecordKind.HELLO, Hello)
        await mesh.say_service(RecordKind.REJECT, Reject(reason=RejectReason.NOT_SERVING, text="later"))
        await self.until("it is heard", lambda: "later" in str(client.servers()[1].trouble))
        call = asyncio.create_task(client.ask(Order(number=4)))
        await mesh.admit()
        head, _ = await mesh.hear_request()
        await mesh.say(reply(head.correlation, encode(Answer(number=4))))
        self.assertEqual((await call).number, 4)

    async def test_two_endpoints_of_one_server_make_one_link(self) -> None:
        one, two = await self.server(), await self.server()
        client = await self.client(one.endpoint, two.endpoint, servers=0)
        await one.admit()
        await client.ready(timeout=PATIENCE)
        await two.admit()
        rejected = await two.hear_service(RecordKind.REJECT, Reject)
        self.assertEqual(rejected.reason, RejectReason.DUPLICATE)
        await two.hears_nothing(0.3)
        one.close()
        await two.admit()
        await self.until("the other is used", lambda: client.servers()[1].rid == b"by hand")

    async def test_what_breaks_the_protocol_ends_the_link_and_what_it_had(self) -> None:
        server = await self.server()
        client = await self.client(server.endpoint, servers=0)
        mesh_only = [bytes((1, kind, 0, 0)) for kind in (4, 5, 7)]
        frames = [
            b"\x01\x00\x00",
            b"\x00\x00\x00\x00",
            b"\xff\xff\xff\xff",
            wire.entry(bytes((2, 32, 0, 0)) + bytes(12)),
            wire.entry(bytes((1, 99, 0, 0))),
            wire.entry(b"\x01"),
            wire.entry(wire.probe(1, answer=False)[:-1]),
            wire.entry(wire.probe(1, answer=False) + b"x"),
            wire.entry(wire.send(1, b"\x00")),
            wire.entry(bytes((1, 6, 0, 0)) + b"no update"),
            wire.entry(service(RecordKind.ADMIT, description())),
            wire.entry(service(RecordKind.HELLO, description())),
            wire.entry(service(RecordKind.UPDATE, Update(revision=4, channels=[ChannelServer(name="new")]))),
            wire.entry(reply(0) + bytes(1 << 20)),
            *(wire.entry(record) for record in mesh_only),
        ]
        for frame in frames:
            with self.subTest(frame[:40].hex()):
                await server.admit()
                call = self.ask(client)
                await server.hear_request()
                await server.say_frames(frame)
                await self.fails(call, ErrorKind.UNAVAILABLE, Execution.UNKNOWN, "protocol error")

    async def test_a_reply_that_cannot_be_used_ends_its_request_alone(self) -> None:
        server, client = await self.linked()
        for record in (
            lambda number: reply(number, b"no answer"),
            lambda number: reply(number, failed=1, error=13),
            lambda number: reply(number, failed=2),
            lambda number: reply(number, failed=0, error=1),
            lambda number: reply(number, b"\xff", failed=1, error=1),
            lambda number: reply(number, b"x" * 257, failed=1, error=1),
            lambda number: reply(number)[:2] + b"\x01\x00" + reply(number)[4:],
        ):
            call = self.ask(client)
            head, _ = await server.hear_request()
            await server.say(record(head.correlation))
            await self.fails(call, ErrorKind.PROTOCOL_ERROR, Execution.UNKNOWN)
        for executed, execution in ((0, Execution.NOT_EXECUTED), (1, Execution.UNKNOWN)):
            for kind in ErrorKind:
                call = self.ask(client)
                head, _ = await server.hear_request()
                await server.say(reply(head.correlation, "ß".encode(), failed=1, error=kind, executed=executed))
                error = await self.fails(call, kind, execution)
                self.assertEqual(error.message, "ß")

    async def test_updates_change_weight_and_state_in_their_order(self) -> None:
        server, client = await self.linked()

        def update(revision: int, weight: int, state: NodeState = NodeState.SERVING) -> bytes:
            channels = [ChannelServer(name="interop", weight=weight)]
            return service(RecordKind.UPDATE, Update(revision=revision, state=state, channels=channels))

        await server.say(update(5, 7), update(4, 8))
        await self.until("it is heard", lambda: client.servers()[0].weight == 7)
        await server.say(update(6, 0))
        await self.until("it is heard", lambda: client.servers()[0].weight == 0)
        call = self.ask(client)
        await server.hears_nothing(0.1)
        await server.say(update(7, 1))
        head, _ = await server.hear_request()
        await server.say(update(8, 1, NodeState.DRAINING), reply(head.correlation, encode(Answer(number=3))))
        self.assertEqual((await call).number, 3, "what it took it may still answer")
        self.ask(client).cancel()
        await server.say(update(9, 1))
        await self.until("it is heard", lambda: client.servers()[0].weight == 0)
        late = client.ask(Order(), timeout=0.2)
        await self.fails(late, ErrorKind.DEADLINE_EXCEEDED, Execution.NOT_EXECUTED)

    async def test_a_probe_is_repeated_until_its_own_answer_comes(self) -> None:
        with mock.patch.multiple(links, PROBE_INTERVAL=0.02, TICK=0.01, HANDSHAKE_PARTS=6000):
            server, client = await self.linked()
            ids = [ProbeHead__codec.load(await server.hear(), 0).id for _ in range(3)]
            self.assertEqual(ids, [ids[0]] * 3)
            await server.say(wire.probe(ids[0] + 5, answer=True))
            self.assertEqual(ProbeHead__codec.load(await server.hear(), 0).id, ids[0])
            await server.say(wire.probe(ids[0], answer=True))
            while (number := ProbeHead__codec.load(await server.hear(), 0).id) == ids[0]:
                pass
            self.assertEqual(number, ids[0] + 1)
            self.assertIsNone(client.servers()[0].trouble)

    async def test_probes_without_end_are_answered_and_fill_nothing(self) -> None:
        server, client = await self.linked()
        for first in range(1, 20_001, 1000):
            await server.say(*(wire.probe(number, answer=False) for number in range(first, first + 1000)))
        answers = 0
        while (record := await server.hear()) != wire.probe(20_000, answer=True):
            answers += record[1] == RecordKind.PROBE_ACK
        self.assertLess(answers, 20_000, "the newest of those that wait is enough")
        call = self.ask(client, 1)
        head, _ = await server.hear_request()
        await server.say(reply(head.correlation, encode(Answer(number=1))))
        self.assertEqual((await call).number, 1)

    async def test_a_link_without_answers_is_dead_unless_it_is_paused(self) -> None:
        with mock.patch.multiple(links, PROBE_INTERVAL=0.02, PROBE_LIMIT=0.3, TICK=0.01, HANDSHAKE_PARTS=6000):
            server = await self.server()
            client = await self.client(server.endpoint, servers=0)
            await server.hear_service(RecordKind.HELLO, Hello)
            await server.say(flow(1, paused=True), service(RecordKind.ADMIT, description()))
            await client.ready(timeout=PATIENCE)
            self.assertTrue(client.servers()[0].paused, "a flow holds from when it comes")
            for _ in range(40):
                await server.hears_nothing(0.02)
            self.assertTrue(client.servers()[0].paused, "the limit stands still")
            await server.say(flow(2, paused=False))
            call = self.ask(client)
            await self.fails(call, ErrorKind.UNAVAILABLE, Execution.UNKNOWN, "no probe was acknowledged")

    async def test_where_replies_come_the_answer_to_a_probe_may_be_behind_them(self) -> None:
        with mock.patch.multiple(links, PROBE_INTERVAL=0.02, PROBE_LIMIT=1.0, TICK=0.01, HANDSHAKE_PARTS=6000):
            server, client = await self.linked()
            began = time.monotonic()
            while time.monotonic() - began < 2:
                call = self.ask(client)
                head, _ = await server.hear_request()
                await server.say(reply(head.correlation, encode(Answer(number=1))))
                self.assertEqual((await call).number, 1)
            call = self.ask(client)
            await self.fails(call, ErrorKind.UNAVAILABLE, Execution.UNKNOWN, "no probe was acknowledged")

    async def test_a_server_that_says_nothing_is_given_up(self) -> None:
        with mock.patch.object(links, "HANDSHAKE_TIME", 0.1):
            server = await self.server()
            client = await self.client(server.endpoint, servers=0)
            await server.hear_service(RecordKind.HELLO, Hello)
            await self.until("it is given up", lambda: "did not answer" in str(client.servers()[0].trouble))
            await server.hear_service(RecordKind.HELLO, Hello)

    async def test_a_client_that_is_closed_while_a_link_ends_leaves_no_socket(self) -> None:
        server = await self.server()
        for turns in range(8):
            client = InteropClient(server.endpoint)
            await self.enterAsync(client)
            await server.admit()
            await client.ready(timeout=PATIENCE)
            context = client._context  # pyright: ignore[reportPrivateUsage]
            assert context is not None
            # It would wait for a socket that was forgotten.
            with mock.patch.object(context, "term"):
                client._links[0]._finish("as the test says")  # pyright: ignore[reportPrivateUsage]
                for _ in range(turns):
                    await asyncio.sleep(0)
                await client.close()
            left = [socket for socket in context._sockets if not socket.closed]  # pyright: ignore[reportPrivateUsage]
            context.destroy(0)
            self.assertEqual(left, [], turns)

    async def test_pauses_grow_with_jitter_and_a_wrong_identity_is_asked_about_once_a_minute(self) -> None:
        server = await self.server()
        client = await self.client(server.endpoint, servers=0)
        pause = client._pause  # pyright: ignore[reportPrivateUsage]
        with mock.patch.object(clients, "MOST_PAUSE", 5.0):
            for failures, bound in ((0, 0.05), (1, 0.1), (4, 0.8), (7, 5.0), (10_000, 5.0)):
                pauses = [await pause(links.End("lost"), failures) for _ in range(300)]
                self.assertTrue(0.001 <= min(pauses) < bound / 10 and bound * 0.9 < max(pauses) <= bound, failures)
        refused = links.End("no", None, RejectReason.IDENTITY)
        for _ in range(20):
            self.assertTrue(45 <= await pause(refused, 0) <= 75)

    async def test_records_are_joined_up_to_64_kib_and_larger_ones_go_alone(self) -> None:
        server, client = await self.linked()
        await server.say(flow(1, paused=True))
        await self.until("it is heard", lambda: client.servers()[0].paused)
        sizes = [10, 30_000, 30_000, 30_000, 100_000, 10]
        calls = [asyncio.create_task(client.tell(Order(body=bytes(size)))) for size in sizes]
        await asyncio.sleep(0)
        await server.say(flow(2, paused=False))
        frames: list[list[int]] = []
        while sum(map(len, frames)) < len(sizes):
            message = await asyncio.wait_for(server._socket.recv_multipart(), PATIENCE)  # pyright: ignore[reportPrivateUsage]
            for frame in message[1:]:
                frames.append([len(record) // 10_000 for record in wire.records(frame, 1 << 30)])
        self.assertEqual(frames, [[0, 3, 3], [3], [10], [0]])
        await asyncio.gather(*calls)


if __name__ == "__main__":
    unittest.main()
