"""Linux's disciplines and ours under the same commands: python3 twin.py ROUNDS [SEED] [KIND...].

Inside a guest, with Linux's own modules of KINDs loaded and ours not. Each round is a sequence of commands that is
drawn at random: `tc` with settings of all kinds, messages with attributes as they come, filters, classes, packets
that stand below a parent which hardly sends, and a device that goes down, changes or moves. It runs on Linux's
discipline first. What `tc` and `ip` answer and what the kernel then shows must be the same on ours. For red and sfb
there is another round, of what is hung below them.
"""

import json
import os
import re
import subprocess
import sys

from commands import CHILDREN, Below, Commands
from packets import burst
from tc import ROOT, Tc, complaints

ROUNDS, SEED = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
KINDS = sys.argv[3:] or ["cake", "codel", "fq_pie", "pie", "red", "sfb", "sfq"]
STEPS = 14
CHANGES = re.compile(r"message|tc qdisc (change|replace|link)")


def run(command):
    """The exit status of a command."""
    return subprocess.run(command.split(), capture_output=True, text=True).returncode


# Disciplines whose classes are queues; dualpi2's have neither number nor figures.
QUEUES = ["cake", "dualpi2", "fq_codel", "sfq"]
# What follows from time, from keyed hashes, from chance, from handles that the kernel chooses, and from a reset, after
# which Linux's cake still has flows in turn.
LOOSE = [
    (re.compile(r'"(\w*delay[\w-]*|prob|avg_dq_rate|drop_next|ldelay|lastcount|\w*_hits|\w*misses|\w*collisions|'
                r'capacity_estimate|tupdate|maxq|maxqlen|rehash|db|pkts_in|credit|sparse_flows|bulk_flows|c?tokens|seed)":[^,}\]]*'),
     r'"\1":_'),
    (re.compile(r"\b[89a-f][0-9a-f]{3}:"), "auto:"),
    (re.compile(r'"leaf":"0x[89a-f][0-9a-f]{3}"'), '"leaf":"auto"'),
    (re.compile(r" c?tokens: .*"), ""),
    # Which queue it is, and for how long.
    (re.compile(r"class (cake|dualpi2|fq_codel|sfq) \w+:.*\n(  ?\S.*\n)*"), ""),
    # Only parallel queues of Linux 7.x count them.
    (re.compile(r'"active_queues":0,'), ""),
    # Shown unless it is zero.
    (re.compile(r',"ce_mark":\d+'), ""),
]


def shown(device, kind):
    """What the kernel shows of a device, apart from LOOSE."""
    commands = f"qdisc show dev {device}\nclass show dev {device}\nfilter show dev {device} parent 10:\n"
    text = subprocess.run(["tc", "-s", "-d", "-j", "-force", "-batch", "-"], input=commands, capture_output=True, text=True).stdout
    for pattern, instead in LOOSE:
        text = pattern.sub(instead, text)
    if kind == "dualpi2":
        # Ours shows its filters also the packets that they choose nothing for.
        text = re.sub(r'"(rule_hit|success)":\d+', r'"\1":0', text)
    return [in_order(line) for line in text.strip().split("\n")]


def in_order(line):
    """A line of JSON in the order of places, the rest as it is: the kernel's own is by handles."""
    try:
        return json.dumps(places(line))
    except ValueError:
        return line


def places(text):
    """Disciplines, classes or filters, as `tc` shows them; of classes no queues, as in LOOSE."""
    told = json.loads(text.replace(":_", ":0"))
    told = [one for one in told if one.get("class") not in QUEUES]
    for one in told:
        # A rate that is found follows from time, and so does how often tbf is asked in vain.
        if "autorate" in one.get("options", {}):
            one["options"].pop("bandwidth", None)
            one.pop("tins", None)
        # Ours is counted when it is shown, which comes after mq; Linux's sfq counts as sent what a reset drops.
        for key in {"tbf": ["overlimits"], "mq": ["overlimits"], "sfq": ["bytes", "packets"]}.get(one.get("kind"), []):
            one.pop(key, None)
    return sorted(told, key=lambda one: one.get("parent", ""))


def apart(linux, ours):
    """The parts of two texts that are not the same."""
    try:
        pairs = zip(places(linux), places(ours), strict=True)
        for one, other in pairs:
            for key in one | other:
                if one.get(key) != other.get(key):
                    name = one.get("kind", one.get("class"))
                    yield f"{name} {key}: Linux {one.get(key)} ours {other.get(key)}"
    except ValueError:
        yield "Linux: " + linux
        yield "ours:  " + ours


def story(seed, kind, drawn):
    """What comes of a round: each command, its answer, and what is shown then."""
    commands = drawn(seed, kind)
    os.system("ip link add t0 numtxqueues 3 type dummy; ip link set t0 up")
    for way in commands.ways:
        word, rest = ("class", way[6:]) if way.startswith("class ") else ("qdisc", way)
        os.system(f"tc {word} add dev t0 {rest}")
    tc, place = Tc(), {"root": ROOT}.get(commands.place)
    if place is None:
        major, minor = commands.place.split()[1].split(":")
        place = int(major, 16) << 16 | int(minor, 16)
    told = []
    for _ in range(STEPS):
        command = commands.next()
        answer = []
        if kind in ("red", "sfb") and CHANGES.match(command if isinstance(command, str) else command[0]):
            # Linux's would drop what is queued: a reset before.
            run(f"ip link set {commands.device} down")
            run(f"ip link set {commands.device} up")
        if command[0] == "send":
            burst(commands.device, *command[1:], marks=(1, 2, 3), waits=False)
        elif command[0] == "message":
            _, verb, options, flag = command
            answer = [tc.send(verb, commands.device, kind, options, handle=0x100000, parent=place, flag=flag)[0]]
            command = ("message", verb, options.hex() if options is not None else "-", flag)
        else:
            answer = [run(one) for one in ([command] if isinstance(command, str) else command)]
        told.append((command, answer, shown(commands.device, kind)))
    os.system(f"ip link del {commands.device}")
    return commands.ways, told


def differences(seed, kind, drawn, linux, ours):
    """Prints the first step of a round that differs."""
    ways, steps = linux
    for at, ((command, wanted, shown), (_, found, seen)) in enumerate(zip(steps, ours[1])):
        if wanted == found and shown == seen:
            continue
        print(f"=== {drawn.__name__} {kind} seed {seed} step {at}: {ways}")
        for past in steps[:at]:
            print("   ", past[0], past[1])
        print("  >", command, "Linux", wanted, "ours", found)
        for one, other in zip(shown, seen):
            if one != other:
                print("\n".join(f"      {text}" for text in apart(one, other)))
        return 1
    return 0


def main():
    os.system("mkdir -p /run/netns; ip netns add other; rmmod simnel 2>/dev/null")
    rounds = [(seed, kind, drawn) for seed in range(SEED, SEED + ROUNDS) for kind in KINDS for drawn in (Commands, Below)
              if drawn is Commands or kind in CHILDREN]
    linux = [story(*one) for one in rounds]
    for kind in sorted(KINDS, key=lambda kind: kind == "pie"):
        os.system(f"rmmod sch_{kind}")
    if os.system(f"insmod simnel.ko aliases={','.join(KINDS)}"):
        sys.exit("our module cannot be loaded")
    ours = [story(*one) for one in rounds]
    wrong = sum(differences(*one, *both) for one, *both in zip(rounds, linux, ours))
    found = complaints()
    print("\n".join(found) if found else f"{len(rounds)} rounds, {wrong} differ, nothing in the log")
    sys.exit(bool(found) or bool(wrong))


main()
