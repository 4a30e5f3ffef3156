"""Packets of every kind, well and badly formed, for the devices of a test.

They are frames of a packet socket's ring, of which one system call sends all: to a device of their
own, whose filter gives a copy to each device under test. A drop there does not reach the sender.
Headers change in the ring while copies wait: nothing that was read of a packet holds for ever.
"""

import mmap
import os
import signal
import socket
import struct

from failslab import ask_for_it

SOL_PACKET = 263
# To copy a packet costs a third of what it costs to make one.
COPIES = 8
FRAMES, ROOM, BLOCK = 256, 4096, 65536
# Of a frame before its packet: the ring's own words, then what is said of its segments and sums.
WORDS, PROMISES = 32, 10
LONGEST = 1700
SEND_REQUEST = 1
TCP, UDP, FRAGMENT = 6, 17, 44
IPV4, IPV6 = 0x800, 0x86DD
SEGMENTS = {IPV4: [1, 1, 3, 5, 0x81], IPV6: [4, 4, 3, 5, 0x84]}  # virtio_net_hdr's kinds
PROTOCOLS = [1, 2, 4, TCP, UDP, 33, 41, 47, 50, 51, 58, 89, 132, 136, 255]
EXTENSIONS = [0, 43, FRAGMENT, 50, 51, 60, 135]


def one_of(draw, usual, others):
    """Mostly what is usual."""
    return usual if draw.random() < 0.8 else draw.choice(others)


def options(draw):
    """Options of TCP: selective acknowledgements, timestamps, and what makes no sense."""
    made = b""
    while draw.random() < 0.6 and len(made) < 40:
        what = draw.random()
        if what < 0.3:
            made += struct.pack("!BBBBII", 1, 1, 8, 10, draw.getrandbits(10), draw.getrandbits(10))
        elif what < 0.6:
            blocks = draw.randint(1, 3)
            made += bytes([1, 1, 5, 2 + 8 * blocks]) + draw.randbytes(8 * blocks)
        else:
            made += bytes([draw.randrange(40), draw.randrange(14)]) + draw.randbytes(draw.randrange(6))
    made = made[:40]
    return made + b"\0" * (-len(made) % 4)


def transport(draw, protocol, flows):
    """A header of a transport protocol; acknowledgements of few flows come often, and grow."""
    ports = struct.pack("!HH", 1 + draw.randrange(flows), draw.choice([9, 53, 443]))
    if protocol == UDP:
        return ports + struct.pack("!HH", draw.choice([8, 20, 0xFFFF]), 0)
    if protocol != TCP:
        return draw.randbytes(draw.randrange(24))
    extra = options(draw)
    length = one_of(draw, 5 + len(extra) // 4, range(16))
    flags = draw.choice([0x10, 0x10, 0x10, 0x10, 0x18, 0x50, 0xD0, 0x02, 0x11, 0x14, 0xF0])
    transport.acknowledged = (transport.acknowledged + draw.randrange(3000)) & 0xFFFFFFFF
    return ports + struct.pack("!IIBBHHH", draw.randrange(2), transport.acknowledged, length << 4, flags,
                               draw.choice([0, 1000, 1001]), 0, 0) + extra


transport.acknowledged = 0


def network(draw, kind, flows):
    """An IP packet, or the beginning of one, and where its transport's header begins."""
    protocol = draw.choice([TCP, TCP, TCP, UDP, draw.choice(PROTOCOLS)])
    # Of acknowledgements that a filter may drop nothing is behind the header.
    rest = draw.choice([b"", b"", bytes(draw.choice([1, 100, 500, 1400]))])
    segment = transport(draw, protocol, flows) + rest
    service = draw.choice([0, 0, 1, 2, 3, 0x28, 0xB8, draw.randrange(256)])
    source, destination = draw.randrange(min(flows, 250)), draw.randrange(3)
    if kind == IPV4:
        extra = draw.choice([b"", b"", b"", draw.randbytes(4 * draw.randrange(11))])
        words = one_of(draw, 5 + len(extra) // 4, range(16))
        total = one_of(draw, 20 + len(extra) + len(segment), [0, 19, 20, 40, 0xFFFF])
        fragment = one_of(draw, 0x4000, [0, 0x2000, 0x2001, 0x1FFF, 100])
        head = struct.pack("!BBHHHBBH4s4s", 4 << 4 | words, service, total, 1, fragment, 64, protocol,
                           draw.getrandbits(16), bytes([10, 1, 0, source]), bytes([10, 0, 0, destination]))
        head += extra
        return head + segment, len(head)
    chain, first = b"", protocol
    while draw.random() < 0.3:
        if first == FRAGMENT:
            chain = bytes([first, 0, 0, draw.choice([0, 1, 8]), 0, 0, 0, 1]) + chain
        first, words = draw.choice(EXTENSIONS), draw.choice([0, 0, 1, 3])
        follows = draw.choice(EXTENSIONS) if chain else protocol
        chain = bytes([follows, words]) + draw.randbytes(6 + 8 * words) + chain
    head = struct.pack("!IHBB16s16s", 6 << 28 | service << 20 | draw.getrandbits(20),
                       one_of(draw, len(chain + segment), [0, 1, 8, 0xFFFF]), first, 64,
                       b"\xfd" + bytes(14) + bytes([source]), b"\xfd" + bytes(14) + bytes([destination]))
    return head + chain + segment, len(head + chain)


def frame(draw, flows):
    """A frame, with what a network card of a guest would say of its segments and sums before it."""
    kind = draw.choice([IPV4, IPV4, IPV6])
    packet, header = network(draw, kind, flows)
    link = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1])
    for _ in range(draw.choice([0, 0, 0, 1, 2, 3])):
        link += struct.pack("!HH", draw.choice([0x8100, 0x88A8]), draw.getrandbits(16))
    link += struct.pack("!H", one_of(draw, kind, [IPV4, IPV6, 0x806, 0x8864, 0x8847, 0x88CC, 5, 0x8100]))
    whole = (link + packet)[:LONGEST]
    if draw.random() < 0.2:
        # Cut off anywhere behind the link's header.
        whole = whole[: draw.randint(14, max(14, len(whole)))]
    start = len(link) + header
    flags, segments, size = 0, 0, 0
    if draw.random() < 0.3:
        flags = 1
        if draw.random() < 0.5:
            segments = draw.choice(SEGMENTS[kind])
            size = draw.choice([1, 100, 536, 1000, draw.randrange(1, 2000)])
            whole += bytes(max(0, LONGEST - len(whole)))
    # So much lies in one piece.
    linear = draw.choice([14, start, start + 20, len(whole), len(whole), draw.randrange(LONGEST)])
    linear, sum_at = min(linear, len(whole)), draw.choice([16, 16, 6])
    return struct.pack("=BBHHHH", flags, segments, linear, size, start, sum_at) + whole


class Ring:
    """Frames that a device sends when it is told to, at once."""

    def __init__(self, device, draw):
        self.draw = draw
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        for option, value in [(10, 1), (15, 1), (14, 1)]:  # PACKET_VERSION 2, _VNET_HDR, _LOSS
            self.socket.setsockopt(SOL_PACKET, option, value)
        sizes = struct.pack("IIII", BLOCK, FRAMES * ROOM // BLOCK, ROOM, FRAMES)
        self.socket.setsockopt(SOL_PACKET, 13, sizes)  # PACKET_TX_RING
        self.socket.bind((device, 0))
        self.ring = mmap.mmap(self.socket.fileno(), FRAMES * ROOM)
        words = memoryview(self.ring).cast("I")
        self.requests, self.lengths = words[:: ROOM // 4], words[1 :: ROOM // 4]
        self.all = memoryview(struct.pack("I", SEND_REQUEST) * FRAMES).cast("I")
        for at in range(FRAMES):
            self.renew(at)

    def renew(self, at):
        """Writes another frame."""
        made = frame(self.draw, self.draw.choice([1, 10, 1000, 60000]))
        self.lengths[at] = len(made)
        start = at * ROOM + WORDS
        self.ring[start : start + len(made)] = made

    def send(self):
        """Sends all frames, some of which are new or damaged."""
        draw = self.draw
        for _ in range(4):
            self.renew(draw.randrange(FRAMES))
        for _ in range(8):
            at = draw.randrange(FRAMES) * ROOM + WORDS + PROMISES + draw.randrange(14, 100)
            self.ring[at] = draw.randrange(256)
        self.requests[:] = self.all
        try:
            self.socket.send(b"", socket.MSG_DONTWAIT)
        except OSError:
            pass  # no filter is there, or no memory


class Traffic:
    """Packets for devices, until it is stopped."""

    def __init__(self, draw):
        os.system("ip link add source type dummy; ip link set source up; tc qdisc add dev source clsact")
        self.pid = os.fork()
        if self.pid == 0:
            ring = Ring("source", draw)
            ask_for_it()
            while True:
                ring.send()

    def goes_to(self, devices):
        """These get COPIES of each packet from now on, in turn, and nobody else."""
        os.system("tc filter del dev source egress")
        if devices:
            turns = [devices[count % len(devices)] for count in range(COPIES)]
            actions = " pipe ".join(f"action mirred egress mirror dev {device}" for device in turns)
            os.system(f"tc filter add dev source egress matchall {actions} trap")

    def stop(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.system("ip link del source")
