"""A client against a real Rust host."""

from __future__ import annotations

import asyncio
import datetime
import gc
import itertools
import os
import unittest
import uuid
import warnings

from zlink_generated import interop
from zlink_generated.interop import Answer, Bounded, InteropClient, Mood, Order
from zlink_generated.zlink import ArgumentError, CallError, ErrorKind, Execution, Timestamp, UnknownMember, encode

from .kit import PATIENCE, Case, Host, hold
from .values import value


def asks(client: InteropClient, numbers: range) -> list[asyncio.Task[Answer]]:
    """Calls that are held, all at once."""
    return [asyncio.create_task(client.ask(hold(number), timeout=PATIENCE)) for number in numbers]


class Data(Case):
    async def test_every_type_goes_there_and_back(self) -> None:
        client = await self.client(self.host().endpoint)
        for seed in range(50):
            sent = value(seed)
            self.assertEqual(await client.echo(sent), sent, seed)

    async def test_limits_hold_and_one_beyond_is_refused_before_it_is_sent(self) -> None:
        host = self.host()
        client = await self.client(host.endpoint)
        most = Bounded(text="ßßßß", items=[0, 1, 254, 255])
        self.assertEqual(await client.bounded(most), most)
        for beyond in (Bounded(text="ßßßßx"), Bounded(items=[1] * 5), Bounded(items=[256]), Bounded(items=[-1])):
            with self.assertRaises(ArgumentError):
                await client.bounded(beyond)

    async def test_the_smaller_of_both_limits_holds_for_a_record(self) -> None:
        for at_client, at_host in ((100_000, 200_000), (200_000, 100_000)):
            host = self.host(max_message=at_host)
            client = await self.client(host.endpoint, max_message=at_client)
            # What FlatBuffers adds depends on the size only in steps of 8.
            order = Order(number=1, body=bytes(99_900))
            order.body += bytes(100_000 - 24 - len(encode(order)))
            self.assertEqual(24 + len(encode(order)), 100_000)
            await client.tell(Order(number=2))
            with self.assertRaises(ArgumentError):
                await client.ask(Order(number=3, body=order.body + bytes(8)))
            # The answer has the body twice, and cannot come back: the host says so.
            await self.fails(client.ask(order, timeout=PATIENCE), ErrorKind.INTERNAL_FAILURE, Execution.UNKNOWN)
            # A channel runs more than one at a time.
            self.assertEqual(sorted(host.seen()), [1, 2])

    async def test_metadata_of_every_type_arrives(self) -> None:
        client = await self.client(self.host().endpoint)
        entries = [
            interop.TENANT("Łódź"),
            interop.ATTEMPT(255),
            interop.WEIGHT(-0.1),
            interop.URGENT(True),
            interop.TRACE(uuid.UUID(int=7)),
            interop.SINCE(Timestamp(-5)),
            interop.LASTS(datetime.timedelta(days=-1)),
            ("free", ""),
        ]
        answer = await client.ask(Order(), metadata=entries)
        self.assertEqual(answer.metadata, dict(entries))
        self.assertEqual(interop.LASTS.read(answer.metadata["lasts"]), datetime.timedelta(days=-1))
        self.assertEqual((await client.ask(Order(), metadata={"a": "b"})).metadata, {"a": "b"})
        for wrong in (lambda: interop.ATTEMPT(256), lambda: interop.URGENT(2)):  # type: ignore[arg-type]
            with self.assertRaises(ArgumentError):
                wrong()

    async def test_the_largest_metadata_arrives_and_one_byte_more_is_refused(self) -> None:
        client = await self.client(self.host().endpoint)
        largest = {"k": "v" * (1024 - 2 - 3 - 1)}
        self.assertEqual((await client.ask(Order(), metadata=largest)).metadata, largest)
        for beyond in ({"k": largest["k"] + "v"}, {"": "v"}, {"k" * 256: ""}, {"k": "\0"}):
            with self.assertRaises(ArgumentError):
                await client.ask(Order(), metadata=beyond)


class Ends(Case):
    async def test_a_deadline_ends_a_request_that_may_run(self) -> None:
        host = self.host()
        client = await self.client(host.endpoint)
        numbers = itertools.count(10)
        await self.ends_running(host, lambda number: client.ask(hold(number), timeout=0.3), numbers)
        # 150 ms are the schema's.
        await self.ends_running(host, lambda number: client.hurry(hold(number)), numbers)
        host.tell("release")
        self.assertEqual((await client.ask(Order(number=3))).number, 3, "late replies disturb nobody")
        for wrong in (0.0, -1.0, 3_000_000.0, float("nan")):
            with self.assertRaises(ArgumentError):
                await client.ask(Order(), timeout=wrong)

    async def test_without_a_server_a_call_waits_and_never_reaches_a_later_one(self) -> None:
        first = self.host()
        endpoint = first.endpoint
        first.kill()
        client = await self.client(endpoint, servers=0)
        error = await self.fails(
            client.ask(Order(number=1), timeout=0.3), ErrorKind.DEADLINE_EXCEEDED, Execution.NOT_EXECUTED, endpoint
        )
        self.assertIn("no server of channel 'interop' was ready in time", str(error))
        waiting = asyncio.create_task(client.ask(Order(number=2), timeout=PATIENCE))
        cancelled = asyncio.create_task(client.ask(Order(number=3), timeout=PATIENCE))
        await asyncio.sleep(0)
        cancelled.cancel()
        later = self.host(endpoint=endpoint, name="later")
        self.assertEqual((await waiting).who, "later", "a call that still waits is taken")
        await client.ask(Order(number=4))
        self.assertEqual(later.seen(), [2, 4])
        with self.assertRaises(asyncio.CancelledError):
            await cancelled

    async def test_an_endpoint_that_is_none_is_told_as_such(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for wrong in ("tcp://127.0.0.1:port", "tcp://", "tcp://127.0.0.1:0", "tcp://h:65536", "tcp://*:7", "http://h:7"):
                with self.assertRaises(ArgumentError):
                    InteropClient(wrong)
            for wrong in (f"ipc:///{'x' * 300}", "tcp://no such host:7"):
                client = await self.client(wrong, servers=0)
                error = await self.fails(
                    client.ask(Order(number=1), timeout=0.3), ErrorKind.DEADLINE_EXCEEDED, Execution.NOT_EXECUTED, wrong
                )
                self.assertNotIn("closed", str(error))
            gc.collect()
        self.assertEqual([str(it.message) for it in caught], [])

    async def test_a_call_that_found_no_server_tells_what_hinders_each_endpoint(self) -> None:
        gone = self.host()
        gone.kill()
        endpoints = (gone.endpoint, "tcp://no-such-host.invalid:7001")
        client = await self.client(*endpoints, servers=0)
        troubles = ["no connection was made"] * 2
        await self.until("both fail", lambda: [it.trouble for it in client.servers()] == troubles)
        text = "".join(f"; {endpoint}: no connection was made" for endpoint in endpoints)
        await self.fails(
            client.ask(Order(number=1), timeout=0.3), ErrorKind.DEADLINE_EXCEEDED, Execution.NOT_EXECUTED, text
        )

    async def test_a_channel_that_the_host_does_not_serve_is_not_waited_for(self) -> None:
        host = self.host()
        client = await self.client(host.endpoint, servers=0, channel="nobody", timeout=PATIENCE)
        text = "the server refused: CHANNEL: this is channel \"interop\", not \"nobody\""
        for call in (client.ask(Order(number=1)), client.tell(Order(number=2))):
            await self.fails(call, ErrorKind.NOT_FOUND, Execution.NOT_EXECUTED, text)
        self.assertEqual(host.seen(), [])

    async def test_what_no_hello_can_say_is_refused_at_once(self) -> None:
        for wrong in ("x" * 256, "\ud800"):
            with self.assertRaises(ArgumentError):
                InteropClient("tcp://127.0.0.1:1", security_identity=wrong)
        with self.assertRaises(ArgumentError):
            InteropClient("tcp://127.0.0.1:1", channel="\ud800")
        with self.assertRaises(ArgumentError):
            InteropClient("tcp://\ud800:1")

    async def test_another_event_loop_is_refused_and_does_not_wait_for_ever(self) -> None:
        host = self.host()
        client = await self.client(host.endpoint)

        def elsewhere() -> None:
            for call in (client.ask(Order(number=1)), client.tell(Order(number=1)), client.ready()):
                with self.assertRaises(RuntimeError):
                    asyncio.run(asyncio.wait_for(call, 3))

        await asyncio.to_thread(elsewhere)
        self.assertEqual((await client.ask(Order(number=2))).number, 2)
        self.assertEqual(host.seen(), [2])

    async def test_a_cancelled_request_ends_here_alone(self) -> None:
        host = self.host()
        client = await self.client(host.endpoint)
        call = asyncio.create_task(client.ask(hold(1)))
        await self.until("it runs", lambda: host.seen() == [1])
        call.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await call
        host.tell("release")
        self.assertEqual((await client.ask(Order(number=2))).number, 2)

    async def test_a_handler_that_fails_is_told_as_such(self) -> None:
        client = await self.client(self.host().endpoint)
        for what in ("fail", "panic"):
            await self.fails(client.ask(Order(what=what)), ErrorKind.INTERNAL_FAILURE, Execution.UNKNOWN)
        await client.tell(Order(what="fail"))
        self.assertEqual((await client.ask(Order(what="go on"))).who, "one")

    async def test_a_killed_server_ends_what_it_had_and_nothing_is_sent_again(self) -> None:
        host = self.host()
        endpoint = host.endpoint
        client = await self.client(endpoint)
        calls = [asyncio.create_task(client.ask(hold(number), timeout=PATIENCE)) for number in range(1, 6)]
        await self.until("all run", lambda: len(host.seen()) == 5)
        host.kill()
        for call in calls:
            await self.fails(call, ErrorKind.UNAVAILABLE, Execution.UNKNOWN)
        again = self.host(endpoint=endpoint, name="two")
        self.assertEqual((await client.ask(Order(number=9), timeout=PATIENCE)).who, "two")
        self.assertEqual(again.seen(), [9])

    async def test_a_drained_server_finishes_what_it_took_and_gets_nothing_new(self) -> None:
        one, two = self.host(), self.host(name="two")
        client = await self.client(one.endpoint, two.endpoint)
        held = [asyncio.create_task(client.ask(hold(number), timeout=PATIENCE)) for number in (1, 2)]
        await self.until("one each", lambda: len(one.seen()) == len(two.seen()) == 1)
        self.assertEqual(one.tell("drain"), "draining")
        await self.until("it is heard", lambda: client.servers()[0].weight == 0)
        self.assertEqual({(await client.ask(Order(number=5))).who for _ in range(10)}, {"two"})
        one.tell("release")
        two.tell("release")
        self.assertEqual({(await call).who for call in held}, {"one", "two"})
        self.assertEqual(one.said(), "drained")
        await self.until("the link has ended", lambda: client.servers()[0].trouble is not None)

    async def test_a_closed_client_ends_its_calls(self) -> None:
        host = self.host()
        client = await self.client(host.endpoint)
        running = asyncio.create_task(client.ask(hold(1)))
        await self.until("it runs", lambda: host.seen() == [1])
        await client.close()
        await self.fails(running, ErrorKind.SHUTTING_DOWN, Execution.UNKNOWN)
        await self.fails(client.ask(Order()), ErrorKind.SHUTTING_DOWN, Execution.NOT_EXECUTED)
        await client.close()


class Contract(Case):
    """A later version of the server's contract."""

    async def test_what_is_compatible_goes_on(self) -> None:
        host = self.host("next")
        client = await self.client(host.endpoint)
        answer = await client.ask(Order(number=7, body=b"x"), metadata={"a": "b"})
        self.assertEqual((answer.number, answer.body, answer.metadata), (7, b"x", {"a": "b"}))
        self.assertEqual((answer.mood, answer.detail), (7, UnknownMember(9)))
        self.assertNotIsInstance(answer.mood, Mood)
        await client.tell(Order(number=8))
        await self.until("it is told", lambda: host.seen() == [7, 8])

    async def test_what_is_not_ends_at_once_with_its_name(self) -> None:
        client = await self.client(self.host("next").endpoint)
        gone = client.echo(value(0), timeout=PATIENCE)
        await self.fails(gone, ErrorKind.NOT_FOUND, Execution.NOT_EXECUTED)
        stricter = client.bounded(Bounded(text="a"), timeout=PATIENCE)
        await self.fails(stricter, ErrorKind.PROTOCOL_ERROR, Execution.NOT_EXECUTED, "must")
        changed = client.hurry(Order(), timeout=PATIENCE)
        await self.fails(changed, ErrorKind.PROTOCOL_ERROR, Execution.UNKNOWN, "who")
        self.assertEqual((await client.ask(Order())).who, "one", "and the link stands")


class Pressure(Case):
    async def test_calls_are_spread_by_weight(self) -> None:
        hosts = [self.host(name="one", weight=300), self.host(name="two", weight=100)]
        client = await self.client(*(host.endpoint for host in hosts))
        answers = [(await client.ask(Order())).who for _ in range(40)]
        self.assertEqual((answers.count("one"), answers.count("two")), (30, 10))
        hosts[0].tell("weight 0")
        await self.until("it is heard", lambda: client.servers()[0].weight == 0)
        self.assertEqual({(await client.ask(Order())).who for _ in range(10)}, {"two"})

    async def full(self, host: Host, client: InteropClient) -> list[asyncio.Task[Answer]]:
        """As many calls as handlers run at once, 256, all held."""
        # Few at a time, so that no pause is asked for, and over again, before all handlers hold: then it lasts.
        calls: list[asyncio.Task[Answer]] = []
        for number in range(0, 256, 4):
            calls += asks(client, range(number, number + 4))
            await self.until("they hold", lambda: len(host.seen()) == len(calls))
        return calls

    async def test_a_saturated_host_pauses_its_clients_and_loses_nothing(self) -> None:
        # 256 handlers run at once; ten more calls may wait.
        host = self.host(jobs=10)
        client = await self.client(host.endpoint)
        calls = await self.full(host, client)
        self.assertFalse(client.servers()[0].paused)
        calls += asks(client, range(256, 600))
        await self.until("it asks for a pause", lambda: client.servers()[0].paused)
        late = asyncio.create_task(client.ask(Order(number=1000), timeout=PATIENCE))
        told = asyncio.create_task(client.tell(Order(number=1001)))
        await self.fails(
            client.ask(Order(number=999), timeout=0.3), ErrorKind.DEADLINE_EXCEEDED, Execution.NOT_EXECUTED, "room"
        )
        self.assertFalse(late.done() or told.done(), "both wait here")
        host.tell("release")
        self.assertEqual([(await call).number for call in calls], list(range(600)))
        await late
        await told
        await self.until("all were seen", lambda: len(host.seen()) == 602)
        self.assertEqual(sorted(host.seen()), [*range(600), 1000, 1001])

    async def test_a_host_that_is_full_and_restarts_is_given_nothing_twice(self) -> None:
        host = self.host(jobs=10)
        client = await self.client(host.endpoint)
        calls = await self.full(host, client)
        calls += asks(client, range(256, 400))
        await self.until("it asks for a pause", lambda: client.servers()[0].paused)
        calls += asks(client, range(400, 600))
        host.kill()
        later = self.host(endpoint=host.endpoint, name="later")
        later.tell("release")
        answered: list[int] = []
        for number, outcome in enumerate(await asyncio.gather(*calls, return_exceptions=True)):
            if isinstance(outcome, Answer):
                self.assertEqual((outcome.number, outcome.who), (number, "later"))
                answered.append(number)
            else:
                assert isinstance(outcome, CallError), outcome
                self.assertEqual((outcome.kind, outcome.execution), (ErrorKind.UNAVAILABLE, Execution.UNKNOWN))
        self.assertEqual(sorted(later.seen()), answered, "what may have run in the first is never sent again")
        self.assertLessEqual({*range(400, 600)}, {*answered}, "what waited here is")
        self.assertFalse({*range(256)} & {*answered})

    async def test_ten_thousand_at_once(self) -> None:
        client = await self.client(self.host().endpoint)

        async def ask(number: int) -> int:
            answer = await client.ask(Order(number=number, body=number.to_bytes(8, "little")), timeout=PATIENCE)
            self.assertEqual(answer.body, number.to_bytes(8, "little"))
            return answer.number

        numbers = await asyncio.gather(*(ask(number) for number in range(10_000)))
        self.assertEqual(numbers, list(range(10_000)))

    async def test_large_records_go_both_ways(self) -> None:
        client = await self.client(self.host().endpoint)
        body = os.urandom(5 << 20)
        answers = await asyncio.gather(*(client.ask(Order(number=n, body=body), timeout=PATIENCE) for n in range(3)))
        self.assertTrue(all(answer.body == body for answer in answers))


if __name__ == "__main__":
    unittest.main()
