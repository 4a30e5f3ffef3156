"""pktgen, the kernel's generator of packets, as tests drive it."""

import os
import re
import time


def say(file, *lines):
    """Writes to a file of pktgen's."""
    for line in lines:
        with open("/proc/net/pktgen/" + file, "w") as control:
            control.write(line + "\n")


def add(thread, name, queue, size, source, destination, flows):
    """Adds a device to a thread: packets without end, of `flows` of one host, through one transmit queue."""
    say(thread, f"add_device {name}")
    say(name, "xmit_mode queue_xmit", "count 0", f"pkt_size {size}", "delay 1", f"dst {destination}", f"src_min {source}",
        f"src_max {source}", "udp_src_min 1", f"udp_src_max {flows}", "udp_dst_min 9", "udp_dst_max 9",
        f"queue_map_min {queue}", f"queue_map_max {queue}")


def start(*devices):
    """Starts it; the process that waits for its end. It sends to `devices` by then."""
    pid = os.fork()
    if pid == 0:
        say("pgctrl", "start")
        os._exit(0)
    while not all(map(sent, devices)):
        time.sleep(0.01)
    return pid


def stop(child):
    """Stops it, however late it starts: a stop that comes before the start is forgotten."""
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        say("pgctrl", "stop")
        time.sleep(0.02)


def threads():
    """Its threads in the kernel, by their numbers as processes."""
    return [pid for pid in filter(str.isdigit, os.listdir("/proc")) if name_of(pid).startswith("kpktgend_")]


def name_of(pid):
    """Name of a process, or nothing if it has ended."""
    try:
        with open(f"/proc/{pid}/comm") as comm:
            return comm.read()
    except OSError:
        return ""


def sent(device):
    """Packets that it has handed to the device."""
    try:
        with open("/proc/net/pktgen/" + device) as control:
            text = control.read()
    except OSError:
        return 0
    return int(text.split("pkts-sofar:")[1].split()[0]) if "pkts-sofar:" in text else 0


def arrived(device):
    """Packets that it has handed to the device, those that were refused as well."""
    with open("/proc/net/pktgen/" + device) as control:
        return sum(map(int, re.search(r"pkts-sofar: (\d+) +errors: (\d+)", control.read()).groups()))
