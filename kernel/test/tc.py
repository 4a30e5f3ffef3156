"""Requests for queue disciplines, byte by byte, for tests inside a guest."""

import os
import re
import socket
import struct
import time

RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC, RTM_GETTCLASS = 36, 37, 38, 42
REQUEST, ACK, ROOT_FLAG, REPLACE, EXCL, CREATE = 1, 4, 0x300, 0x100, 0x200, 0x400
TCA_KIND, TCA_OPTIONS, TCA_STATS2, TCA_STATS_BASIC = 1, 2, 7, 1
NESTED = 0x8000
ERROR, DONE = 2, 3  # kinds of messages
ROOT = 0xFFFFFFFF
LEAKS = "/sys/kernel/debug/kmemleak"
VERBS = {
    "add": (RTM_NEWQDISC, CREATE | EXCL),
    "replace": (RTM_NEWQDISC, CREATE | REPLACE),
    "change": (RTM_NEWQDISC, 0),
    "del": (RTM_DELQDISC, 0),
}


def attribute(number, payload):
    """An attribute as it stands in a message."""
    return struct.pack("HH", 4 + len(payload), number) + payload + b"\0" * (-len(payload) % 4)


def attributes(payload):
    """The attributes in `payload`, by their numbers."""
    found, at = {}, 0
    while at + 4 <= len(payload):
        size, number = struct.unpack("HH", payload[at : at + 4])
        if size < 4:
            break
        found[number & ~NESTED] = payload[at + 4 : at + size]
        at += (size + 3) & ~3
    return found


def words(text):
    """The options of `simnel`."""
    return attribute(1, text.encode() + b"\0")


class Tc:
    """A netlink socket."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self.socket.bind((0, 0))
        self.socket.setsockopt(270, 11, 1)  # extended acknowledgements
        self.socket.settimeout(20)

    def send(self, verb, device, kind, options=None, handle=0, parent=ROOT, flag=NESTED):
        """Sends a request, for a device by name or number; the error number (0: none) and the kernel's text."""
        number, flags = VERBS[verb]
        index = device if isinstance(device, int) else socket.if_nametoindex(device)
        body = struct.pack("BxxxiIII", 0, index, handle, parent, 0)
        body += attribute(TCA_KIND, kind.encode() + b"\0")
        if options is not None:
            body += attribute(TCA_OPTIONS | flag, options)
        header = struct.pack("IHHII", 16 + len(body), number, REQUEST | ACK | flags, 1, 0)
        self.socket.send(header + body)
        return self.answer()

    def answer(self):
        """The answer to the last request."""
        message = self.socket.recv(65536)
        length, _, flags = struct.unpack("IHH", message[:8])
        error, request = struct.unpack("iI", message[16:24])
        at = 36 if flags & 0x100 else 20 + request
        told = attributes(message[at:length]) if flags & 0x200 else {}
        text = told.get(1, b"").rstrip(b"\0").decode(errors="replace")
        return -error, text

    def messages(self, number, index):
        """What the kernel knows of one kind, of one interface or of all (0): message by message."""
        body = struct.pack("BxxxiIII", 0, index, 0, 0, 0)
        self.socket.send(struct.pack("IHHII", 16 + len(body), number, REQUEST | ROOT_FLAG, 2, 0) + body)
        while True:
            part = self.socket.recv(1 << 20)
            while part:
                length, kind = struct.unpack("IH", part[:6])
                if kind == DONE:
                    return
                if kind == ERROR:
                    raise OSError(-struct.unpack("i", part[16:20])[0], "the kernel tells no more")
                yield part[:length]
                part = part[(length + 3) & ~3 :]

    def dump(self):
        """Reads all disciplines with their statistics; the number of bytes."""
        return sum(len(message) for message in self.messages(RTM_GETQDISC, 0))

    def classes(self, device):
        """Bytes that each class of a device has sent."""
        counts = []
        for message in self.messages(RTM_GETTCLASS, socket.if_nametoindex(device)):
            statistics = attributes(attributes(message[36:]).get(TCA_STATS2, b""))
            counts.append(struct.unpack("Q", statistics[TCA_STATS_BASIC][:8])[0])
        return counts


def link(*arguments):
    """Runs `ip link`."""
    return os.spawnlp(os.P_WAIT, "ip", "ip", "link", *arguments)


def sent(device):
    """Bytes that the device has sent, with the times before and after the look."""
    before = time.monotonic()
    with open(f"/sys/class/net/{device}/statistics/tx_bytes") as counter:
        return before, int(counter.read()), time.monotonic()


def fates(text):
    """Packets that a discipline has sent, dropped and queued, by what `tc -s` says of it."""
    return tuple(map(int, re.search(r"(\d+) pkt \(dropped (\d+),.*?backlog \S+ (\d+)p", text, re.S).groups()))


def complaints():
    """Lines of the kernel's log that speak of a mistake in us."""
    lines = os.popen("dmesg").read().splitlines()
    # Slabs' own checks say "BUG kmalloc-64".
    signs = ("BUG:", "BUG kmalloc", "KASAN", "simnel:", "unreferenced", "Oops", "possible recursive",
             "corruption", "circular locking", "inconsistent lock")

    def is_ours(at):
        # User-mode Linux makes mistakes of its own, with RCU for one; ours have us in their trace.
        if "suspicious RCU" in lines[at] or "WARNING: CPU" in lines[at]:
            return any("[simnel]" in line for line in lines[at : at + 60])
        return any(sign in lines[at] for sign in signs)

    return [line for at, line in enumerate(lines) if is_ours(at)
            and "taint" not in line and "aliases:" not in line]


def leaks():
    """What kmemleak, where it is there, knows of memory that was forgotten since it was asked last."""
    if not os.path.exists(LEAKS):
        return []
    def order(word):
        with open(LEAKS, "w") as control:
            control.write(word)

    # Twice: what is new counts only once it has some age.
    for _ in range(2):
        order("scan")
        time.sleep(6)
    with open(LEAKS) as told:
        lines = told.read().splitlines()
    order("clear")
    return lines
