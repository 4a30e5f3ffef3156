"""Draws whole cases."""
import random

from fuzz_linux import changes
from fuzz_linux.draw import draw, draw_arrivals


def draw_case(seed, kinds, kept):
    """A case, the lines of its input, when it ends, and what of settings it covers; with `kept` also
    what is known to differ (ledger.toml)."""
    rng = random.Random(seed)
    kind = rng.choice(kinds)
    text, args, names = draw(rng, kind)
    shapes = kind in ("tbf", "htb") or (kind == "cake" and "bandwidth" in text)
    # CoDel's clock has 32 bits of 1024 ns, and Linux's takes the mark "never dropped", 0, for a
    # time: a fresh flow is another in the second half of each 73 minutes (ledger.toml).
    start = rng.choice([10**11, 10**11, 97 * 10**12])
    args += [f"seed={rng.getrandbits(63) | 1}", f"key0={rng.getrandbits(63)}",
             f"key1={rng.getrandbits(63)}", f"t0={start}"]
    if not shapes:
        args.append(f"link={rng.choice([1000000, 8000000, 50000000])}")
    lines, end = draw_arrivals(rng, rng.choice([300, 1500, 4000]), start, names)
    covers = [f"{kind} {word}" for word in text.split()[1:] if word[0].isalpha()]
    for key, _, value in (arg.partition("=") for arg in args):
        covers.append(f"{kind} {key}")
        if key in ("class", "leaf"):
            name, *parts = value.split(";")[key == "leaf":]
            of = name if key == "leaf" else kind
            covers += [f"{of} {part.split('=')[0]}" for part in parts]
    if rng.random() < 0.6:
        lines, changed = changes.draw(rng, kind, args, lines, kept)
        covers += changed
    case = dict(name=f"seed-{seed}", group=kind, qdisc=kind, tc=text, args=args)
    return case, [*lines, f"{end},stats"], end, covers
