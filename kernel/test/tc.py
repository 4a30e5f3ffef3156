"""Requests for queue disciplines, byte by byte, for tests inside a guest."""

import os
import socket
import struct

RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
REQUEST, ACK, ROOT_FLAG, REPLACE, EXCL, CREATE = 1, 4, 0x300, 0x100, 0x200, 0x400
TCA_KIND, TCA_OPTIONS = 1, 2
NESTED = 0x8000
ROOT = 0xFFFFFFFF
VERBS = {
    "add": (RTM_NEWQDISC, CREATE | EXCL),
    "replace": (RTM_NEWQDISC, CREATE | REPLACE),
    "change": (RTM_NEWQDISC, 0),
    "del": (RTM_DELQDISC, 0),
}


def attribute(number, payload):
    """An attribute as it stands in a message."""
    return struct.pack("HH", 4 + len(payload), number) + payload + b"\0" * (-len(payload) % 4)


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
        text = ""
        while flags & 0x200 and at + 4 <= length:
            size, number = struct.unpack("HH", message[at : at + 4])
            if size < 4:
                break
            if number == 1:
                text = message[at + 4 : at + size].rstrip(b"\0").decode(errors="replace")
            at += (size + 3) & ~3
        return -error, text

    def dump(self):
        """Reads all disciplines with their statistics; the number of bytes."""
        body = struct.pack("BxxxiIII", 0, 0, 0, 0, 0)
        header = struct.pack("IHHII", 16 + len(body), RTM_GETQDISC, REQUEST | ROOT_FLAG, 2, 0)
        self.socket.send(header + body)
        total = 0
        while True:
            part = self.socket.recv(1 << 20)
            total += len(part)
            if struct.unpack("H", part[4:6])[0] == 3 or b"\x03\0\x02\0" == part[-16:-12]:
                return total


def link(*arguments):
    """Runs `ip link`."""
    return os.spawnlp(os.P_WAIT, "ip", "ip", "link", *arguments)


def complaints():
    """Lines of the kernel's log that speak of a mistake in us."""
    lines = os.popen("dmesg").read().splitlines()
    # Slabs' own checks say "BUG kmalloc-64".
    signs = ("BUG:", "BUG kmalloc", "KASAN", "simnel:", "unreferenced", "Oops", "possible recursive",
             "corruption", "circular locking", "inconsistent lock")

    def is_ours(at):
        # User-mode Linux makes mistakes of its own with RCU; ours have us in their trace.
        if "suspicious RCU" in lines[at]:
            return any("[simnel]" in line for line in lines[at : at + 60])
        return any(sign in lines[at] for sign in signs)

    return [line for at, line in enumerate(lines) if is_ours(at)
            and "taint" not in line and "aliases:" not in line]
