#!/usr/bin/env python3
"""Records what real Linux does in a situation, in virtual time, for `simnel conformance linux`.

    conformance/record-linux.py KERNEL SITUATIONS.json OUT [NAME...]

KERNEL is a Linux built by conformance/build-linux.sh: it runs as a user process whose clock is
virtual, so that work on the CPU takes no time and neighbours on the machine do not matter.
SITUATIONS.json is an object of situations by name (conformance/situations.json is one);
OUT/NAME.json is written for each, in the format of the recordings that are in conformance/linux.

The topology is client - router - server over veth in namespaces, the discipline under test on both
of the router's ports, half of the base round-trip time by netem on each end host. One packet is one
segment (gso_max_segs 1). No root, network or setting of the host is used.

A situation:
    up, down, qdisc  rates and a discipline for both ports: cake shapes itself, others are under htb
    tc               or the lines themselves: r1 is the port to the server, r0 that to the client
                     (filters need a kernel that was built with the OPTION NET_CLS_U32)
    base_rtt_ms, ecn, duration_s, warm_s, seeds, description
    flows            objects of {n, t, dir, cc, mark, start, stop, srcip, dstip, rate, size, every, read}:
                     t is tcp (default), probe or cbr; without start, flows start within the first tenth
                     of a second, at times drawn from the seed, and each of n so many seconds (every)
                     after the one before. A tcp flow with a size ends with that. Its receiver reads
                     all that comes, or so many bits a second (read), a hundred times a second
    host             more words for the end hosts' netem, such as "rate 1gbit"
    rmem, wmem       largest socket buffers in bytes; else those of a machine with a gigabyte and more
    pacing           true: senders of TCP are paced by the kernel
    sack             false: no selective acknowledgements; likewise timestamps and window_scaling
    mtu              of the end hosts' devices; else 1500
    sniff            true: also keep the headers of all packets, to compare packet by packet
"""

import ctypes
import itertools
import json
import mmap
import os
import random
import resource
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time

DSCP = {"BE": 0, "LE": 1, "CS0": 0, "CS1": 8, "CS2": 16, "CS3": 24, "CS4": 32, "CS5": 40,
        "CS6": 48, "CS7": 56, "EF": 46, "VA": 44, "AF11": 10, "AF12": 12, "AF13": 14,
        "AF21": 18, "AF22": 20, "AF23": 22, "AF31": 26, "AF32": 28, "AF33": 30,
        "AF41": 34, "AF42": 36, "AF43": 38}
CLONE_NEWNET = 0x40000000
POWER_OFF = 0x4321FEDC
SOL_PACKET = 263
PACKET_RX_RING = 5
PACKET_VERSION = 10
TPACKET_V2 = 1
TP_STATUS_USER = 1
# A frame: 32 bytes of header, where it came from (whose 11th byte is the kind), then the packet.
RING_KIND = 32 + 10
RING_FRAME = 256
RING_BLOCK = 4096
RING_BLOCKS = 1024
SO_MAX_PACING_RATE = 47
FASTEST_PACING = 0xFFFFFFFE
PR_SET_TIMERSLACK = 29
ATTEMPTS = 3
CHUNK = bytes(65536)
# What Linux chooses where there is memory; the virtual machine has less.
LARGEST = {"rmem": 6 << 20, "wmem": 4 << 20}
# The same for all connections together, in pages, as with 16 GB: short of that, Linux drops what came
# out of order.
ALL_CONNECTIONS = "196608 262144 393216"
MTU = 1500
OPTIONS = ("sack", "timestamps", "window_scaling")
# Seconds between the reads of a slow reader.
READING = 0.01
SO_MEMINFO = 55
WMEM_QUEUED = 5


# ---------------------------------------------------------------- inside: the virtual machine


def sh(line):
    subprocess.run(line.split(), check=True, stdin=subprocess.DEVNULL)


def sysctl(name, value):
    with open("/proc/sys/net/ipv4/" + name, "w") as file:
        file.write(str(value))


class Hosts:
    """Three network namespaces; sockets stay in the one in which they were made."""

    def __init__(self, libc):
        self.libc = libc
        for name in "CRS":
            sh(f"ip netns add {name}")

    def enter(self, name):
        with open(f"/run/netns/{name}") as file:
            if self.libc.setns(file.fileno(), CLONE_NEWNET):
                raise OSError("setns")

    def build(self, job, flows):
        ends = (("C", "c0", "r0", "10.0.1."), ("S", "s0", "r1", "10.0.2."))
        for host, device, port, net in ends:
            sh(f"ip link add {device} netns {host} type veth peer name {port} netns R")
            own = {net + "1"} | {a for f in flows for a in (f["srcip"], f["dstip"])
                                 if a.startswith(net)}
            for address in sorted(own):
                sh(f"ip -n {host} addr add {address}/24 dev {device}")
            sh(f"ip -n R addr add {net}254/24 dev {port}")
            for namespace, name in ((host, device), (host, "lo"), ("R", port)):
                sh(f"ip -n {namespace} link set {name} up")
            sh(f"ip -n {host} link set {device} gso_max_segs 1 mtu {job.get('mtu', MTU)}")
            macs = [json.loads(subprocess.check_output(
                f"ip -n {n} -j link show {d}".split()))[0]["address"]
                for n, d in ((host, device), ("R", port))]
            for address in sorted(own):
                sh(f"ip -n R neigh replace {address} lladdr {macs[0]} dev {port} nud permanent")
            sh(f"ip -n {host} neigh replace {net}254 lladdr {macs[1]} dev {device} nud permanent")
            sh(f"ip -n {host} route add default via {net}254")
            half = int(job["base_rtt_ms"] * 500)
            netem = f"netem delay {half}us limit 100000 {job.get('host', '')}"
            sh(f"tc -n {host} qdisc add dev {device} root {netem}")
        for host in "CRS":
            self.enter(host)
            sysctl("ip_forward", 1)
            sysctl("tcp_ecn", job.get("ecn", 0))
            for option in OPTIONS:
                sysctl(f"tcp_{option}", int(job.get(option, True)))
            sysctl("tcp_no_metrics_save", 1)
            for name, default in (("rmem", 131072), ("wmem", 16384)):
                sysctl(f"tcp_{name}", f"4096 {default} {job.get(name, LARGEST[name])}")
        sh("ip -n R link set lo up")
        for line in job["tc"]:
            sh(line)


class Ring:
    """A packet socket's ring of TPACKET_V2 frames."""

    def __init__(self, sock, port, packets):
        sock.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        frames = RING_BLOCK // RING_FRAME * RING_BLOCKS
        ring = struct.pack("4I", RING_BLOCK, RING_BLOCKS, RING_FRAME, frames)
        sock.setsockopt(SOL_PACKET, PACKET_RX_RING, ring)
        self.sock = sock
        self.memory = mmap.mmap(sock.fileno(), RING_BLOCK * RING_BLOCKS)
        self.port = port
        self.packets = packets
        self.at = 0

    def read(self, _):
        while True:
            status, _, length, start, _, seconds, nanoseconds = struct.unpack_from(
                "3I2H2I", self.memory, self.at)
            if not status & TP_STATUS_USER:
                return
            if self.memory[self.at + RING_KIND] == socket.PACKET_OUTGOING:
                data = self.memory[self.at + start:self.at + start + min(length, 128)]
                self.packets.append((seconds + nanoseconds * 1e-9, self.port, data.hex()))
            struct.pack_into("I", self.memory, self.at, 0)
            self.at = (self.at + RING_FRAME) % (RING_BLOCK * RING_BLOCKS)


class Run:
    def __init__(self, job):
        self.job = job
        self.libc = ctypes.CDLL(None, use_errno=True)
        # Timers fire when they are due, not up to 50 microseconds later.
        self.libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
        self.flows = expand(job)
        sysctl("tcp_mem", ALL_CONNECTIONS)
        # Two sockets a flow, and what Python itself has open.
        files = 3 * len(self.flows) + 64
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        self.hosts = Hosts(self.libc)
        self.hosts.build(job, self.flows)
        self.poll = select.epoll()
        self.handlers = {}
        self.timers = []
        self.numbers = itertools.count()
        self.zero = time.monotonic() + 0.05
        self.warm = job["warm_s"]
        self.statistics = {}
        self.overhead = 0

    def now(self):
        return time.monotonic() - self.zero

    def at(self, when, action):
        self.timers.append((when, len(self.timers), next(self.numbers), action))
        self.timers.sort(reverse=True)

    def watch(self, sock, events, handler):
        sock.setblocking(False)
        self.handlers[sock.fileno()] = handler
        self.poll.register(sock.fileno(), events)

    def make_socket(self, host, kind, flow):
        self.hosts.enter(host)
        sock = socket.socket(socket.AF_INET, kind)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, DSCP[flow.get("mark", "BE")] << 2)
        return sock

    def ends(self, flow):
        return ("S", "C") if flow["dir"] == "down" else ("C", "S")

    def tcp(self, flow):
        sender, receiver = self.ends(flow)
        listener = self.make_socket(receiver, socket.SOCK_STREAM, flow)
        listener.bind((flow["dstip"], 5000 + flow["id"]))
        listener.listen(1)
        flow.update(rx=0, rx_warm=0, samples=[], series=[])

        def accept(_):
            peer, _ = listener.accept()
            peer.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, DSCP[flow["mark"]] << 2)
            flow["peer"] = peer

            def take(most):
                """True if more may come."""
                data = peer.recv(most)
                flow["rx"] += len(data)
                if not data:
                    flow["completion"] = round(self.now() - flow["start"], 6)
                    peer.shutdown(socket.SHUT_WR)
                return bool(data)

            def read(_):
                try:
                    while take(1 << 18):
                        pass
                    self.poll.unregister(peer.fileno())
                except BlockingIOError:
                    pass

            if "read" not in flow:
                self.watch(peer, select.EPOLLIN, read)
                return
            peer.setblocking(False)
            first = self.now()

            def read_portion(number):
                try:
                    if not take(int(flow["read"] * READING / 8)):
                        return
                except BlockingIOError:
                    pass
                self.at(first + (number + 1) * READING, lambda: read_portion(number + 1))

            self.at(first + READING, lambda: read_portion(1))

        self.watch(listener, select.EPOLLIN, accept)

        def start():
            sock = self.make_socket(sender, socket.SOCK_STREAM, flow)
            cc = flow.get("cc", "cubic").encode()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc)
            if self.job.get("pacing"):
                sock.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE,
                                struct.pack("I", FASTEST_PACING))
            sock.bind((flow["srcip"], 0))
            flow["sock"] = sock
            sock.setblocking(False)
            sock.connect_ex((flow["dstip"], 5000 + flow["id"]))
            # A SYN has no payload: what it takes is every segment's overhead.
            memory = sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 4 * (WMEM_QUEUED + 1))
            self.overhead = struct.unpack_from("I", memory, 4 * WMEM_QUEUED)[0]

            left = flow.get("size", float("inf"))

            def write(_):
                nonlocal left
                try:
                    while left > 0:
                        left -= sock.send(CHUNK[:min(left, len(CHUNK))])
                    self.poll.unregister(sock.fileno())
                    sock.shutdown(socket.SHUT_WR)
                except (BlockingIOError, BrokenPipeError):
                    pass

            self.watch(sock, select.EPOLLOUT, write)
            if "stop" in flow:
                def stop():
                    self.poll.unregister(sock.fileno())
                    sock.shutdown(socket.SHUT_WR)
                self.at(flow["stop"], stop)

        self.at(flow["start"], start)

    def datagrams(self, flow, echo):
        sender, receiver = self.ends(flow)
        far = self.make_socket(receiver, socket.SOCK_DGRAM, flow)
        far.bind((flow["dstip"], 7000 + flow["id"]))
        near = self.make_socket(sender, socket.SOCK_DGRAM, flow)
        near.bind((flow["srcip"], 0))
        near.connect((flow["dstip"], 7000 + flow["id"]))
        size = flow.get("size", 64)
        interval = size * 8 / flow["rate"] if "rate" in flow else 0.1
        flow.update(sent=0, rtt=[], forward=[], rx_window=0)
        count = 0

        def arrived(_):
            try:
                while True:
                    data, peer = far.recvfrom(2048)
                    (sent,) = struct.unpack_from("d", data)
                    if self.now() >= self.warm:
                        flow["rx_window"] += len(data)
                    if sent >= self.warm:
                        flow["forward"].append((self.now() - sent) * 1e3)
                    if echo:
                        far.sendto(data, peer)
            except BlockingIOError:
                pass

        def returned(_):
            try:
                while True:
                    (sent,) = struct.unpack_from("d", near.recv(2048))
                    if sent >= self.warm:
                        flow["rtt"].append((self.now() - sent) * 1e3)
            except BlockingIOError:
                pass

        def send():
            nonlocal count
            try:
                near.send(struct.pack("d", self.now()).ljust(size, b"\0"))
            except OSError:
                pass
            if self.now() >= self.warm:
                flow["sent"] += 1
            count += 1
            if flow["start"] + count * interval < flow.get("stop", self.job["duration_s"]):
                self.at(flow["start"] + count * interval, send)

        self.watch(far, select.EPOLLIN, arrived)
        self.watch(near, select.EPOLLIN, returned)
        self.at(flow["start"], send)

    def tcp_info(self, flow):
        """ss's figures that the recordings quote, from struct tcp_info of Linux 6.1."""
        if "sock" not in flow:
            return None
        raw = flow["sock"].getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256).ljust(256, b"\0")
        word = lambda n: struct.unpack_from("I", raw, 8 + 4 * n)[0]
        return {"t": round(self.now(), 6), "cwnd": word(18), "ssthresh": word(17),
                "rtt_us": word(15), "total_retrans": word(23),
                "min_rtt_us": struct.unpack_from("I", raw, 148)[0],
                "bytes_acked": struct.unpack_from("Q", raw, 120)[0],
                "data_segs_out": struct.unpack_from("I", raw, 156)[0],
                "delivered_ce": struct.unpack_from("I", raw, 196)[0]}

    def sample(self):
        for flow in self.flows:
            if flow["t"] == "tcp":
                info = self.tcp_info(flow)
                if info:
                    flow["samples"].append(info)
                flow["series"].append(flow["rx"])
        step = self.job.get("sample_s", 1)
        if self.now() + step <= self.job["duration_s"] + 1e-3:
            self.at(round(self.now() / step) * step + step, self.sample)

    def shoot(self, name):
        for port in ("r1", "r0"):
            text = subprocess.check_output(f"tc -n R -s -j qdisc show dev {port}".split())
            self.statistics.setdefault(port, {})[name] = json.loads(text)
        if name == "at_warm":
            for flow in self.flows:
                if flow["t"] == "tcp":
                    flow["rx_warm"] = flow["rx"]
                    info = self.tcp_info(flow)
                    flow["retrans_warm"] = info["total_retrans"] if info else 0

    def sniff(self):
        """Packets that leave the router's ports: time, port, and headers. The kernel copies them:
        what shares its memory with a packet that is kept would not merge with its neighbours."""
        self.packets = []
        self.hosts.enter("R")
        for port in ("r1", "r0"):
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            ring = Ring(sock, port, self.packets)
            sock.bind((port, 3))
            self.watch(sock, select.EPOLLIN, ring.read)

    def run(self):
        if self.job.get("sniff"):
            self.sniff()
        for flow in self.flows:
            if flow["t"] == "tcp":
                self.tcp(flow)
            else:
                self.datagrams(flow, flow["t"] == "probe")
        end = self.job["duration_s"]
        self.at(self.warm, lambda: self.shoot("at_warm"))
        self.at(self.job.get("sample_s", 1), self.sample)
        over = []
        self.at(end, lambda: (self.shoot("at_end"), over.append(True)))
        while not over:
            # epoll's own timeouts are whole milliseconds.
            timeout = max(0.0, self.timers[-1][0] - self.now())
            if select.select([self.poll], [], [], timeout)[0]:
                for fd, _ in self.poll.poll(0):
                    self.handlers[fd](fd)
            while self.timers and self.timers[-1][0] <= self.now():
                self.timers.pop()[-1]()
        return self.result(end)

    def result(self, end):
        seconds = end - self.warm
        flows, probes = [], {}
        for flow in self.flows:
            keep = {k: flow[k] for k in ("id", "t", "dir", "mark", "start", "srcip", "dstip")}
            keep.update({k: flow[k] for k in ("stop", "rate", "size", "read", "completion")
                         if k in flow})
            if flow["t"] == "tcp":
                window = [s for s in flow["samples"] if s["t"] > self.warm]
                mean = lambda key: sum(s[key] for s in window) / max(len(window), 1)
                last = flow["samples"][-1] if flow["samples"] else {}
                keep.update(
                    cc=flow.get("cc", "cubic"),
                    goodput_mbps=round((flow["rx"] - flow["rx_warm"]) * 8e-6 / seconds, 6),
                    rx_bytes_total=flow["rx"],
                    retrans=last.get("total_retrans", 0) - flow.get("retrans_warm", 0),
                    retrans_total=last.get("total_retrans", 0),
                    data_segs_out=last.get("data_segs_out", 0),
                    min_rtt_ms=last.get("min_rtt_us", 0) / 1e3,
                    delivered_ce=last.get("delivered_ce", 0),
                    cwnd_mean=round(mean("cwnd"), 2),
                    srtt_mean_ms=round(mean("rtt_us") / 1e3, 3))
                if self.job.get("keep_series"):
                    keep.update(samples=flow["samples"], series=flow["series"])
            else:
                if flow["t"] == "probe":
                    keep["rtt_ms"] = figures(flow["rtt"])
                    probes.setdefault(flow["mark"], []).extend(flow["rtt"])
                else:
                    keep["rx_mbps"] = round(flow["rx_window"] * 8e-6 / seconds, 4)
                    keep["owd_ms"] = figures(flow["forward"])
                keep["owd_fwd_ms"] = figures(flow["forward"])
                keep["sent"] = flow["sent"]
            flows.append(keep)
        rtt = {mark: figures(values) for mark, values in probes.items() if values}
        names = {"r1": "up(r1)", "r0": "down(r0)"}
        extra = {}
        if self.job.get("sniff"):
            # The ring has the wall clock's times.
            zero = time.time() - self.now()
            extra["packets"] = [(round(at - zero, 6), *rest) for at, *rest in self.packets]
        return {**extra, "overhead": self.overhead, "seed": self.job["seed"],
                "window_s": [self.warm, end], "flows": flows, "probe_rtt_ms": rtt,
                "qdisc": {names[port]: value for port, value in self.statistics.items()}}


def figures(values):
    values = sorted(values)
    if not values:
        return None
    at = lambda share: round(values[min(len(values) - 1, int(share * len(values)))], 3)
    return {"n": len(values), "mean": round(sum(values) / len(values), 3), "p50": at(0.5),
            "p95": at(0.95), "p99": at(0.99), "max": at(1.0), "min": at(0.0)}


def lost(probe):
    """A probe's figures in words."""
    times = probe["rtt_ms"] or {"n": 0, "p99": None}
    return f"(probe: {probe['sent'] - times['n']} of {probe['sent']} lost, p99 {times['p99']} ms)"


def expand(job):
    """The situation's flows one by one, with what was not said."""
    draw = random.Random(job["seed"])
    flows = []
    for entry in job["flows"]:
        for number in range(entry.get("n", 1)):
            flow = {"t": "tcp", "dir": "up", "mark": "BE", **entry, "id": len(flows)}
            flow.pop("n", None)
            later = number * flow.pop("every", 0)
            client, server = "10.0.1.1", "10.0.2.1"
            down = flow["dir"] == "down"
            flow.setdefault("srcip", server if down else client)
            flow.setdefault("dstip", client if down else server)
            late = round(draw.random() * 0.1, 6)
            flow["start"] = round(flow.get("start", late) + later, 6)
            flows.append(flow)
    return flows


def inside(job_path):
    """The first process of the virtual machine."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run")):
        libc.mount(kind.encode(), where.encode(), kind.encode(), 0, None)
    with open(job_path) as file:
        job = json.load(file)
    try:
        result = Run(job).run()
    except Exception as error:  # noqa: BLE001: whatever it is, the host must hear of it
        result = {"error": f"{type(error).__name__}: {error}"}
    with open(job["result"], "w") as file:
        json.dump(result, file)
    os.sync()
    libc.reboot(POWER_OFF)


# ---------------------------------------------------------------- outside: the host


def tc_lines(situation):
    """The router's set-up, from the short form or as it is given."""
    if "tc" in situation:
        return situation["tc"]
    lines = []
    for port, rate in (("r1", situation["up"]), ("r0", situation["down"])):
        add = f"tc -n R qdisc add dev {port}"
        kind, *options = situation["qdisc"].split()
        if kind == "cake":
            lines.append(" ".join([add, "root handle 1: cake bandwidth", rate, *options]))
            continue
        lines += [f"{add} root handle 1: htb default 1",
                  f"tc -n R class add dev {port} parent 1: classid 1:1 htb rate {rate} burst 15k",
                  f"{add} parent 1:1 handle 10: {situation['qdisc']}"]
    return lines


def boot(kernel, init, path, result):
    """One boot. A kernel that is a process sometimes dies of what happens around it: try again."""
    run = {"error": "never started"}
    for _ in range(ATTEMPTS):
        done = subprocess.run(
            [kernel, "mem=512M", "rootfstype=hostfs", "rw", f"init={init}", f"JOB={path}",
             "time-travel=inf-cpu", "quiet", "con=null", "con0=null,fd:1"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=900, check=False)
        if os.path.exists(result):
            with open(result) as file:
                run = json.load(file)
            os.remove(result)
            if "error" not in run:
                break
        else:
            words = done.stdout.decode(errors="replace").strip()
            run = {"error": f"the kernel left no result: {words}"}
    return run


def record(kernel, name, situation, directory):
    situation = {**situation, "tc": tc_lines(situation)}
    runs = []
    for seed in situation.get("seeds", [1, 2]):
        job = {"warm_s": 10, "duration_s": 60, **situation, "seed": seed}
        job["result"] = os.path.join(directory, f"{name}.{seed}.result")
        path = os.path.join(directory, f"{name}.{seed}.job")
        with open(path, "w") as file:
            json.dump(job, file)
        init = os.path.join(directory, "init")
        with open(init, "w") as file:
            command = f"{sys.executable} {os.path.abspath(__file__)} --inside $JOB"
            file.write(f"#!/bin/sh\nexec {command}\n")
        os.chmod(init, 0o755)
        began = time.monotonic()
        run = boot(kernel, init, path, job["result"])
        if "error" in run:
            sys.exit(f"{name}, seed {seed}: {run['error']}")
        run["wall_s"] = round(time.monotonic() - began, 2)
        runs.append(run)
    half = int(situation["base_rtt_ms"] * 500)
    env = {"RTT_MS": situation["base_rtt_ms"], "ECN": situation.get("ecn", 0), "GSOSEGS": 1}
    env.update({k.upper(): situation.get(k, LARGEST[k]) for k in LARGEST})
    env["OVERHEAD"] = max(run.pop("overhead") for run in runs)
    env["PACING"] = int(bool(situation.get("pacing")))
    env["MTU"] = situation.get("mtu", MTU)
    env.update({option.upper(): int(situation.get(option, True)) for option in OPTIONS})
    version = subprocess.check_output([kernel, "--version"], text=True).strip()
    return {"scenario": name, "description": situation.get("description", ""),
            "kernel": f"Linux {version} UML, time-travel=inf-cpu",
            "base_rtt_ms": situation["base_rtt_ms"], "ecn": situation.get("ecn", 0),
            "duration_s": situation.get("duration_s", 60), "tc": situation["tc"],
            "host_qdisc": f"netem delay {half}us limit 100000 {situation.get('host', '')}".strip()
            + " on c0 and s0",
            "env": env, "seeds": situation.get("seeds", [1, 2]), "runs": runs}


def main():
    if len(sys.argv) >= 3 and sys.argv[1] == "--inside":
        return inside(sys.argv[2])
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    kernel, path, out, *names = sys.argv[1:]
    with open(path) as file:
        situations = json.load(file)
    unknown = [name for name in names if name not in situations]
    if unknown:
        sys.exit(f"no such situation in {path}: {', '.join(unknown)}")
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        for name in names or situations:
            recording = record(os.path.abspath(kernel), name, situations[name], directory)
            with open(os.path.join(out, f"{name}.json"), "w") as file:
                json.dump(recording, file)
                file.write("\n")
            runs = recording["runs"]
            print(name, *(sum(f.get("goodput_mbps", 0) for f in r["flows"]) for r in runs),
                  *(lost(f) for r in runs for f in r["flows"] if f["t"] == "probe"),
                  f"{sum(r['wall_s'] for r in runs):.1f} s", flush=True)
    return None


if __name__ == "__main__":
    main()
