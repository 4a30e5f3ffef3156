"""pktgen, the kernel's generator of packets, as tests drive it."""

import os
import time


def say(file, *lines):
    """Writes to a file of pktgen's."""
    for line in lines:
        with open("/proc/net/pktgen/" + file, "w") as control:
            control.write(line + "\n")


def start():
    """Starts it; the process that waits for its end."""
    pid = os.fork()
    if pid == 0:
        say("pgctrl", "start")
        os._exit(0)
    return pid


def stop(child):
    """Stops it, however late it starts: a stop that comes before the start is forgotten."""
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        say("pgctrl", "stop")
        time.sleep(0.02)


def sent(device):
    """Packets that it has handed to the device."""
    try:
        with open("/proc/net/pktgen/" + device) as control:
            text = control.read()
    except OSError:
        return 0
    return int(text.split("pkts-sofar:")[1].split()[0]) if "pkts-sofar:" in text else 0
