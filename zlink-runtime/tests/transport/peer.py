"""A plain ZeroMQ peer for the transport tests: `peer.py ROLE connect|bind ENDPOINT`.

It says what it does in lines that start with "peer: ", and exits with an error where anything is not as it must be.
"""

import struct
import sys
import time

import zmq

ORDINARY, COMPLETION = 16, 32


def say(what):
    print(f"peer: {what}", flush=True)


def record(number, padding=0, kind=ORDINARY):
    return struct.pack("<BBI", 1, kind, number) + b"\x5a" * padding


def batch(*records):
    return b"".join(struct.pack("<I", len(one)) + one for one in records)


def unbatch(frame):
    records, at = [], 0
    while at < len(frame):
        (length,) = struct.unpack_from("<I", frame, at)
        records.append(frame[at + 4 : at + 4 + length])
        at += 4 + length
    return records


class Peer:
    def __init__(self, role, how, endpoint):
        self.socket = zmq.Context().socket(getattr(zmq, role))
        self.socket.setsockopt(zmq.HEARTBEAT_IVL, 100)
        self.socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 400)
        self.socket.setsockopt(zmq.HEARTBEAT_TTL, 400)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, 20000)
        self.socket.setsockopt(zmq.SNDTIMEO, 20000)
        if role in ("DEALER", "REQ", "ROUTER"):
            self.socket.setsockopt(zmq.IDENTITY, f"py-{role}".encode())
        self.monitor = self.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
        if how == "bind":
            self.socket.bind(endpoint)
            say(self.socket.getsockopt(zmq.LAST_ENDPOINT).decode().rstrip("\0"))
        else:
            self.socket.connect(endpoint)
        self.prefix = []
        if role == "ROUTER":
            self.socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
            self.prefix = [b"echo"]

    def send(self, *frames):
        deadline = time.monotonic() + 20
        while True:
            try:
                return self.socket.send_multipart(self.prefix + list(frames))
            except zmq.ZMQError as error:
                if error.errno != zmq.EHOSTUNREACH or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def receive(self, expected):
        """That many records came back, as completions, in their order."""
        records = []
        while len(records) < len(expected):
            frames = self.socket.recv_multipart()
            assert frames[: len(self.prefix)] == self.prefix, frames
            for frame in frames[len(self.prefix) :]:
                records += unbatch(frame)
        wanted = [one[:1] + bytes([COMPLETION]) + one[2:] for one in expected]
        assert records == wanted, f"{len(records)} records, not the {len(wanted)} that were sent"

    def undisturbed(self):
        assert not self.monitor.poll(0), "it lost its connection"


def requests(peer, hold):
    """One message at a time, as REQ must; with `hold`, the other side does not read for a while."""
    for number in range(20):
        one = record(number, 300 if number % 2 else 0)
        peer.send(batch(one))
        peer.receive([one])
    while peer.monitor.poll(0):  # a dial with two lanes was refused before
        peer.monitor.recv_multipart()
    say("hold")
    assert sys.stdin.readline().strip() == "held"
    one = record(99)
    peer.send(batch(one))
    say("sent")
    peer.receive([one])
    large = record(100, 300_000)
    peer.send(batch(large))
    peer.receive([large])


def streams(peer):
    many = [record(number, number % 500) for number in range(1000)]
    for at in range(0, 400, 4):
        peer.send(batch(many[at]))
        peer.send(batch(*many[at + 1 : at + 4]))
    for at in range(400, 1000, 6):
        peer.send(batch(*many[at : at + 3]), b"", batch(*many[at + 3 : at + 6]))
    peer.receive(many)


def subscriber(peer):
    peer.socket.setsockopt(zmq.SUBSCRIBE, b"b")
    for number in range(3):
        frames = peer.socket.recv_multipart()
        assert frames == [b"b-topic", b"news %d" % number], frames
    peer.socket.setsockopt(zmq.UNSUBSCRIBE, b"b")
    assert sys.stdin.readline().strip() == "cancelled"


def publisher(peer):
    told = peer.socket.recv()
    assert told == b"\x01t", told
    time.sleep(1)  # several heartbeats
    for number in range(3):
        peer.socket.send_multipart([b"t-topic", b"news %d" % number])
    told = peer.socket.recv()
    assert told == b"\x00t", told


def main(role, how, endpoint):
    peer = Peer(role, how, endpoint)
    if role == "SUB":
        subscriber(peer)
    elif role == "XPUB":
        publisher(peer)
    else:
        requests(peer, role)
        if role != "REQ":
            streams(peer)
    peer.undisturbed()
    say("done")
    sys.stdin.readline()


main(*sys.argv[1:])
