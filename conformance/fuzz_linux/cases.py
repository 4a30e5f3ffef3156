"""Draws whole cases."""
import random

from fuzz_linux import changes
from fuzz_linux.attributes import configuration
from fuzz_linux.draw import draw, draw_traffic, pick


def draw_case(seed, kinds, kept):
    """A case as `simnel conformance fuzz` reads it, and what of settings it covers; with `kept` also
    what is known to differ (ledger.toml)."""
    rng = random.Random(seed)
    kind = rng.choice(kinds)
    text, args, names = draw(rng, kind)
    shapes = kind in ("tbf", "htb") or (kind == "cake" and "bandwidth" in text)
    # Any place in the 73 minutes of CoDel's clock, which has 32 bits of 1024 ns.
    start = rng.choice([10**11, 97 * 10**12, rng.randrange(2000) * 2**42 + rng.randrange(10**12) * 4])
    args += [f"seed={rng.getrandbits(63) | 1}", f"key0={rng.getrandbits(63)}",
             f"key1={rng.getrandbits(63)}", f"t0={start}"]
    hz = rng.choice([1000, 1000, 1000, 250, 100])
    if hz != 1000:
        args.append(f"hz={hz}")
    if rng.random() < 0.3:
        args.append("wheel=1")
    if not shapes:
        args.append(f"link={pick(rng, [1000000, 8000000, 50000000])}")
    traffic = draw_traffic(rng, names)
    covers = [f"{kind} {word}" for word in text.split()[1:] if word[0].isalpha()]
    for key, _, value in (arg.partition("=") for arg in args):
        covers.append(f"{kind} {key}")
        if key in ("class", "leaf"):
            name, *parts = value.split(";")[key == "leaf":]
            of = name if key == "leaf" else kind
            covers += [f"{of} {part.split('=')[0]}" for part in parts]
    commands = []
    if rng.random() < 0.6:
        commands, changed = changes.draw(rng, kind, args, traffic["count"], kept)
        covers += changed
    case = dict(name=f"seed-{seed}", group=kind, qdisc=kind, tc=text, args=args, hz=hz, start=start,
                traffic=traffic, commands=commands)
    return {**case, "configuration": configuration(case)}, covers
