"""Words of Python, of its library and of the generator as names of methods: each calls what it is named after."""

from __future__ import annotations

import asyncio
import inspect
import typing
import unittest

from zlink_generated import def_ as words
from zlink_generated.zlink import decode, encode, wire
from zlink_generated.zlink.protocol import ChannelServer

from .kit import PATIENCE, Case
from .server import Server, reply


class Words(Case):
    async def test_methods_of_every_name_call_what_they_are_named_after(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        client = await words.ClassClient(server.endpoint).__aenter__()
        self.addAsyncCleanup(client.close)
        await server.admit(scope="class", channels=[ChannelServer(name="class", weight=100)])
        await client.ready(timeout=PATIENCE)
        methods = [name for name, it in vars(words.ClassClient).items() if inspect.iscoroutinefunction(it)]
        self.assertLessEqual({"and_", "class_", "self_", "print", "none", "close_", "ready_", "servers_"}, {*methods})
        for number, name in enumerate(methods):
            method: typing.Callable[..., typing.Awaitable[words.Holder]] = getattr(client, name)
            call = asyncio.ensure_future(method(words.Import(import_=number), timeout=PATIENCE))
            head, rest = await server.hear_request()
            names = wire.names(b"class", b"def.class." + name.rstrip("_").encode())
            self.assertEqual(rest[: len(names)], names, name)
            self.assertEqual(decode(words.Import, rest[len(names) :]).import_, number)
            answer = words.Holder(bytes_=words.Words.NONE, int_=words.Layout(class_=number))
            await server.say(reply(head.correlation, encode(answer)))
            self.assertEqual(await call, answer)
        self.assertEqual(len(methods), 73)


if __name__ == "__main__":
    unittest.main()
