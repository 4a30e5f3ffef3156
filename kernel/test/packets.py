"""UDP packets over IPv4, for tests inside a guest."""

import socket
import struct

ADDRESSES = bytes([10, 0, 0, 1, 10, 0, 0, 2])
SO_MARK = 36
FAR = bytes([2, 0, 0, 0, 0, 2])


def burst(device, count, flows=1, size=1000, priority=0, mark=0, marks=(0,), waits=True):
    """Sends packets with `size` bytes of payload, of flows and with marks (ECN) in turn, all with the same priority and
    firewall mark. What stands in a slow queue fills the socket's buffer: it `waits` for room, or packets are refused.
    Gives the number of those refused or dropped."""
    refused = 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM) as stack:
        stack.setblocking(waits)
        stack.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
        stack.setsockopt(socket.SOL_SOCKET, SO_MARK, mark)
        for n in range(count):
            network = struct.pack("!BBHHHBBH8s", 0x45, marks[n % len(marks)], 28 + size, 0, 0, 64, 17, 0, ADDRESSES)
            transport = struct.pack("!HHHH", 5000 + n % flows, 9, 8 + size, 0)
            try:
                stack.sendto(network + transport + bytes(size), (device, 0x800, 0, 0, FAR))
            except OSError:
                refused += 1
    return refused
