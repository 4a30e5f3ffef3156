"""The DS field in frames of all kinds: python3 frames.py. Inside a guest, with the module loaded.

Packets go from a0 to a1, which a bridge joins to b0, and on to b1. A discipline washes them, or marks some. All
other bytes arrive as they were sent; of the two tags of a frame that a bridge passes on, the packet holds one. Of
acknowledgements a filter leaves few, whatever is before them.
"""

import os
import socket
import struct
import sys
import time

from tc import Tc, complaints, words

ADDRESSES = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1])
IPV4, IPV6 = 0x800, 0x86DD
PPP = {IPV4: 0x21, IPV6: 0x57}
# What is before the packet; the device that sends, the one with the discipline, and the one that receives.
KINDS = {
    "plain": (lambda kind, length: struct.pack("!H", kind), "a0", "a0", "a1"),
    "PPPoE": (lambda kind, length: struct.pack("!HBBHHH", 0x8864, 0x11, 0, 7, length + 2, PPP[kind]), "a0", "a0", "a1"),
    "QinQ": (lambda kind, length: struct.pack("!HHHHH", 0x88A8, 5, 0x8100, 0x0002, kind), "a0", "b0", "b1"),
}
BURST, ACKNOWLEDGEMENTS = 250, 30


def ipv4(protocol, service, segment):
    """A packet with its sum."""
    hosts, length = bytes([10, 0, 0, 1, 10, 0, 0, 2]), 20 + len(segment)
    header = struct.pack("!BBHHHBBH8s", 0x45, service, length, 0, 0x4000, 64, protocol, 0, hosts)
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack("!H", ~total & 0xFFFF) + header[12:] + segment


def frame(name, kind, service):
    """A frame that carries UDP."""
    datagram = struct.pack("!HHHH", 5000, 9, 1008, 0) + bytes(1000)
    if kind == IPV4:
        packet = ipv4(17, service, datagram)
    else:
        packet = struct.pack("!IHBB32s", 0x60000000 | service << 20, 1008, 17, 64, bytes([0xFD] * 32)) + datagram
    return ADDRESSES + KINDS[name][0](kind, len(packet)) + packet


def acknowledgement(name, number):
    """A frame that carries an acknowledgement of TCP."""
    packet = ipv4(6, 0, struct.pack("!HHIIBBHHH", 5000, 80, 1, number, 0x50, 0x10, 1000, 0, 0))
    return ADDRESSES + KINDS[name][0](IPV4, len(packet)) + packet


def arrivals(listener, name):
    """The frames that arrive until none comes, without addresses and the outer of two tags."""
    while True:
        try:
            data, origin = listener.recvfrom(4096)
        except socket.timeout:
            return
        if data[:12] == ADDRESSES and origin[2] != socket.PACKET_OUTGOING:
            yield data[12:]


def on_the_way(name, kind, service):
    return frame(name, kind, service)[16 if name == "QinQ" else 12 :]


def main():
    tc, wrong, marks = Tc(), 0, 0
    os.system("ip link add a0 type veth peer name a1; ip link add b0 type veth peer name b1; "
              "ip link add br0 type bridge forward_delay 0; ip link set a1 master br0; ip link set b0 master br0; "
              "for device in a0 a1 b0 b1 br0; do ip link set $device up; done")
    time.sleep(1)
    for name, (_, source, shaped, sink) in KINDS.items():
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        sender.bind((source, 0))
        listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        listener.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)  # SO_RCVBUFFORCE
        listener.bind((sink, 3))
        listener.settimeout(0.3)
        for kind in (IPV4, IPV6):
            case = f"{name}, {kind:04x}"
            tc.send("replace", shaped, "simnel", words("cake unlimited besteffort wash"))
            sender.send(frame(name, kind, 0xB9))
            found = list(arrivals(listener, name))
            if found != [on_the_way(name, kind, 1)]:
                print(f"{case}: washed to {[data[:50].hex() for data in found]}")
                wrong += 1
            tc.send("replace", shaped, "simnel", words("cake bandwidth 4mbit besteffort rtt 5ms"))
            for _ in range(BURST):
                sender.send(frame(name, kind, 2))
            found = list(arrivals(listener, name))
            marked = found.count(on_the_way(name, kind, 3))
            if not marked or marked + found.count(on_the_way(name, kind, 2)) != len(found):
                print(f"{case}: {marked} marked of {len(found)}, some are {set(data[:30].hex() for data in found)}")
                wrong += 1
            marks += marked
            tc.send("del", shaped, "simnel")
        tc.send("replace", shaped, "simnel", words("cake bandwidth 256kbit besteffort ack-filter"))
        for number in range(ACKNOWLEDGEMENTS):
            sender.send(acknowledgement(name, 1000 * number))
        found = len(list(arrivals(listener, name)))
        if not 1 <= found <= ACKNOWLEDGEMENTS // 2:
            print(f"{name}: {found} of {ACKNOWLEDGEMENTS} acknowledgements are left")
            wrong += 1
        tc.send("del", shaped, "simnel")
        sender.close()
        listener.close()
    found = complaints()
    print("\n".join(found) if found else f"{len(KINDS)} kinds of frames, {marks} marks, nothing in the log")
    sys.exit(bool(found) or bool(wrong))


main()
