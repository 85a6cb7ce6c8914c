"""A Rust host as a process, and waiting for what must come."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import time
import typing
import unittest
import warnings

from zlink_generated.interop import InteropClient, Order
from zlink_generated.zlink import CallError, ErrorKind, Execution

PATIENCE = 60.0
"""For what must come; on a busy machine it takes its time."""


class Host:
    """`interop-host`, which does what it is told."""

    def __init__(self, version: str = "old", name: str = "one", endpoint: str = "tcp://127.0.0.1:0", **options: int) -> None:
        program = os.environ["ZLINK_INTEROP_HOST"]
        arguments = [program, version, endpoint, name, *(f"{key}={value}" for key, value in options.items())]
        deadline = time.monotonic() + PATIENCE
        while True:
            self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            line = self.said()
            if line:
                self.endpoint = line.removeprefix("listening ")
                return
            # A port that was free again may be somebody else's for a moment.
            self.close()
            assert not endpoint.endswith(":0") and time.monotonic() < deadline, "it does not listen"

    def said(self, beginning: str = "") -> str:
        """The next line, which must begin so."""
        line = typing.cast(typing.IO[str], self._process.stdout).readline().rstrip("\n")
        assert line.startswith(beginning), f"{line!r}, not {beginning!r}"
        return line[len(beginning) :]

    def tell(self, what: str) -> str:
        """Tells it something; its answer."""
        stdin = typing.cast(typing.IO[str], self._process.stdin)
        stdin.write(what + "\n")
        stdin.flush()
        return self.said()

    def seen(self) -> list[int]:
        """The numbers that its handlers have seen."""
        return [int(number) for number in self.tell("seen").strip("[]").split(",") if number.strip()]

    def kill(self) -> None:
        """Ends it without a word."""
        self._process.send_signal(signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Ends it, unless it has ended."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait(PATIENCE)


class Case(unittest.IsolatedAsyncioTestCase):
    """A test with hosts and clients, which end with it."""

    def setUp(self) -> None:
        warnings.simplefilter("error", RuntimeWarning)

    async def asyncSetUp(self) -> None:
        # Its notes of where each future was made take ten times as long as the calls.
        asyncio.get_running_loop().set_debug(False)

    def host(self, version: str = "old", name: str = "one", endpoint: str = "tcp://127.0.0.1:0", **options: int) -> Host:
        host = Host(version, name, endpoint, **options)
        self.addCleanup(host.close)
        return host

    async def client(self, *endpoints: str, servers: int | None = None, **options: typing.Any) -> InteropClient:
        """A client that is ready for calls; with `servers=0`, one that is not asked to be."""
        client = await self.enterAsync(InteropClient(*endpoints, **options))
        wanted = len(endpoints) if servers is None else servers
        if wanted:
            await client.ready(wanted, timeout=PATIENCE)
        return client

    async def enterAsync(self, client: InteropClient) -> InteropClient:
        await client.__aenter__()
        self.addAsyncCleanup(client.close)
        return client

    async def until(self, what: str, holds: typing.Callable[[], bool]) -> None:
        """Waits until it holds."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, f"in vain: {what}"
            await asyncio.sleep(0.002)

    async def ends_running(
        self, host: Host, call: typing.Callable[[int], typing.Awaitable[object]], numbers: typing.Iterator[int]
    ) -> None:
        """The call's deadline must pass while a handler holds it. Where the machine stands still for longer than that, it
        passes before; but not every time."""
        for number in itertools.islice(numbers, 20):
            with self.assertRaises(CallError) as raised:
                await call(number)
            self.assertEqual(raised.exception.kind, ErrorKind.DEADLINE_EXCEEDED, str(raised.exception))
            if raised.exception.execution == Execution.UNKNOWN and number in host.seen():
                return
        raise AssertionError("no handler ever held it")

    async def fails(
        self, call: typing.Awaitable[object], kind: ErrorKind, execution: Execution, text: str = ""
    ) -> CallError:
        """The call must fail so."""
        try:
            answer = await call
        except CallError as error:
            self.assertEqual((error.kind, error.execution), (kind, execution), str(error))
            self.assertIn(text, str(error))
            return error
        raise AssertionError(f"it did not fail: {answer!r}")


def hold(number: int = 0) -> Order:
    """What is not answered before the host is told to release."""
    return Order(what="hold", number=number)
