"""A server by hand: a ROUTER socket that says and hears single records, so that a test can say anything at any time."""

from __future__ import annotations

import asyncio
import collections
import typing

import zmq
import zmq.asyncio

from zlink_generated.zlink import Message, decode, encode, wire
from zlink_generated.zlink.protocol import (
    ChannelServer,
    FlowHead,
    FlowHead__codec,
    Hello,
    NodeState,
    Operation,
    RecordHead,
    RecordHead__codec,
    RecordKind,
    ReplyHead,
    ReplyHead__codec,
    RequestHead,
    RequestHead__codec,
    Topology,
)

PATIENCE = 60.0


class Server:
    """Speaks with one client at a time."""

    def __init__(self) -> None:
        self._context = zmq.asyncio.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind("tcp://127.0.0.1:*")
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")
        self._heard: collections.deque[bytes] = collections.deque()
        self._client = b""

    def close(self) -> None:
        self._socket.close(0)
        self._context.term()

    async def hear(self) -> bytes:
        """The next record, whatever it is."""
        while not self._heard:
            frames = await asyncio.wait_for(self._socket.recv_multipart(), PATIENCE)
            self._client = frames[0]
            for frame in frames[1:]:
                self._heard.extend(wire.records(frame, 1 << 30))
        return self._heard.popleft()

    async def hears_nothing(self, seconds: float) -> None:
        """For that long, no record comes but probes."""
        try:
            while True:
                record = await asyncio.wait_for(self.hear(), seconds)
                assert record[1] == RecordKind.PROBE, record.hex()
        except asyncio.TimeoutError:
            return

    async def hear_request(self) -> tuple[RequestHead, bytes]:
        """The next request, past probes: its head, and what follows."""
        while True:
            record = await self.hear()
            if record[1] != RecordKind.PROBE:
                assert record[1] == RecordKind.CHANNEL_REQUEST, record.hex()
                return RequestHead__codec.load(record, 0), record[RequestHead__codec.size :]

    async def hear_service(self, kind: RecordKind, of: type[Message]) -> typing.Any:
        """The next record, which must be of that kind."""
        record = await self.hear()
        assert record[1] == kind, record.hex()
        return decode(of, record[RecordHead__codec.size :])

    async def say(self, *records: bytes) -> None:
        """Says records, in one frame."""
        await self.say_frames(b"".join(wire.entry(record) for record in records))

    async def say_frames(self, *frames: bytes) -> None:
        """Says frames as they are, in one message."""
        await self._socket.send_multipart([self._client, *frames])

    async def say_service(self, kind: RecordKind, message: Message) -> None:
        await self.say(service(kind, message))

    async def admit(self, **changes: typing.Any) -> Hello:
        """Hears a hello and admits; what it heard."""
        hello = await self.hear_service(RecordKind.HELLO, Hello)
        await self.say_service(RecordKind.ADMIT, description(**changes))
        return typing.cast(Hello, hello)


def service(kind: RecordKind, message: Message) -> bytes:
    return RecordHead__codec.store(RecordHead(major=1, kind=kind)) + encode(message)


def description(**changes: typing.Any) -> Hello:
    """What a server of the channel `interop` says of itself."""
    fields: dict[str, typing.Any] = {
        "topology": Topology.CLIENT_SERVER,
        "scope": "interop",
        "rid": b"by hand",
        "generation": 7,
        "revision": 3,
        "channels": [ChannelServer(name="interop", weight=100)],
        "max_message": 1 << 20,
        "state": NodeState.SERVING,
        "operations": [
            Operation(packet="interop.interop.ask"),
            Operation(channel="interop", packet="interop.interop.ask"),
        ],
    }
    return Hello(**(fields | changes))


def flow(version: int, *, paused: bool) -> bytes:
    return FlowHead__codec.store(FlowHead(major=1, kind=RecordKind.FLOW, paused=int(paused), version=version))


def reply(correlation: int, payload: bytes = b"", *, failed: int = 0, error: int = 0, executed: int = 0) -> bytes:
    head = ReplyHead(
        major=1, kind=RecordKind.REPLY, failed=failed, error=error, executed=executed, correlation=correlation
    )
    return ReplyHead__codec.store(head) + payload
