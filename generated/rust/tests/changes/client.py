"""Calls servers of the other version, as a list in JSON says, and holds what comes of it against the list.

The packages `before` and `after` are what was generated from the two schemas. Each call has an hour, and a minute to end.
"""

from __future__ import annotations

import asyncio
import json
import sys
import typing

import after
import after.changes
import before
import before.changes

SIDES: dict[str, typing.Any] = {"before": before, "after": after}
AT_ONCE = 60


async def carries(clients: dict[str, typing.Any], call: dict[str, typing.Any]) -> object:
    """How a call ends that carries a message to whoever sends it back: as it should, or what it came to."""
    side = SIDES[call["side"]]
    of = getattr(side.changes, call["message"])
    sent = side.zlink.decode(of, bytes.fromhex(call["sent"]))
    asked = clients[call["side"]].zlink__request(call["packet"], sent, of, 3600.0, {})
    try:
        reply = await asyncio.wait_for(asked, AT_ONCE)
    except side.zlink.CallError as error:
        return error.kind.name.replace("_", "").lower() == (call["end"] or "").lower() or error
    return call["end"] is None and reply == side.zlink.decode(of, bytes.fromhex(call["back"])) or reply


async def means(call: dict[str, typing.Any]) -> object:
    """How a call of a service ends: with the word that it should, or with the kind of error, or what it came to."""
    side = SIDES[call["side"]]
    service = "".join(word.capitalize() for word in call["service"].split("_"))
    async with getattr(side.changes, f"{service}Client")(call["endpoint"]) as client:
        message = getattr(side.changes, call["message"])(**call["fields"])
        asked = getattr(client, call["method"])(message, timeout=3600.0, metadata=call["metadata"])
        try:
            reply = await asyncio.wait_for(asked, AT_ONCE)
        except side.zlink.CallError as error:
            return error.kind.name.replace("_", "").lower() == (call["end"] or "").lower() or error
        return call["end"] is None and reply.word == call["word"] or reply


async def main(endpoint: str, path: str) -> None:
    with open(path, encoding="utf-8") as file:
        calls = json.load(file)
    wrong: list[str] = []
    older = before.zlink.Client(endpoint, channel="rows")
    newer = after.zlink.Client(endpoint, channel="rows")
    async with older, newer:
        for call in calls["rows"]:
            came = await carries({"before": older, "after": newer}, call)
            if came is not True:
                wrong.append(f"{call['packet']} from {call['side']}: {came!r}, not {call['end']}")
    for call in calls["services"]:
        came = await means(call)
        if came is not True:
            wrong.append(f"{call['service']}.{call['method']} from {call['side']}: {came!r}, not {call['end']}")
    print("\n".join(wrong) or f"{len(calls['rows'])} and {len(calls['services'])} calls")
    sys.exit(bool(wrong))


asyncio.run(main(*sys.argv[1:]))
