"""A plain ZeroMQ peer for the fanout tests: `peer.py sub ENDPOINT TOPIC…` or `peer.py pub ENDPOINT`.

A subscriber says each message that it gets. A publisher binds, says where, and sends what its input says: `send FRAME…`. Frames
are hexadecimal. Both say at the end of their input how often their connection was lost.
"""

import os
import sys

import zmq


def say(what):
    print(f"peer: {what}", flush=True)


role, endpoint, *topics = sys.argv[1:]
socket = zmq.Context().socket({"sub": zmq.SUB, "pub": zmq.PUB}[role])
socket.setsockopt(zmq.LINGER, 0)
# Without a PONG in time, it ends the connection.
socket.setsockopt(zmq.HEARTBEAT_IVL, 100)
socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 2000)
socket.setsockopt(zmq.HEARTBEAT_TTL, 2000)
monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
if role == "pub":
    socket.bind(endpoint)
    say(socket.getsockopt(zmq.LAST_ENDPOINT).decode().rstrip("\0"))
else:
    for topic in topics:
        socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
    socket.connect(endpoint)

poller = zmq.Poller()
poller.register(0, zmq.POLLIN)
if role == "sub":
    poller.register(socket, zmq.POLLIN)
said = b""
while not said.endswith(b"bye\n"):
    for ready, _ in poller.poll():
        if ready is socket:
            say("got " + " ".join(frame.hex() for frame in socket.recv_multipart()))
            continue
        # Not by lines: what is read and not yet looked at would wake nobody.
        read = os.read(0, 65536)
        assert read, "the test has gone"
        *lines, said = (said + read).split(b"\n")
        for command, *words in (line.decode().split() for line in lines):
            if command == "send":
                socket.send_multipart([bytes.fromhex(word) for word in words])
            elif command == "cancel":
                socket.setsockopt(zmq.UNSUBSCRIBE, words[0].encode())
            else:
                said = b"bye\n"

lost = 0
while monitor.poll(0):
    monitor.recv_multipart()
    lost += 1
say(f"lost {lost}")
