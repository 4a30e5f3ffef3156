"""Draws what is done to a discipline while packets wait: other settings, resets, looks."""
from fuzz_linux import draw as drawn
from fuzz_linux.attributes import FLAGS, class_options, minor, options, pairs

# Linux takes these only when a discipline is made.
FIXED = {"fq_codel": ("flows",), "fq_pie": ("flows",)}
# Linux has no change of these.
UNCHANGED = ("sfq",)
# Ours reads the attributes of all others; of these it is told words that say all.
WORDS = ("tbf", "pfifo", "bfifo", "pfifo_head_drop")
# Drawn only if it is asked for: what the ledger keeps. Settings that, changed, meet packets in places
# or with marks that ours does not have, or (dualpi2) leave a time behind of packets that are gone:
NOT_CHANGED = {
    "cake": ("diffserv", "flow", "autorate"),
    "pie": ("dq_rate_estimator",),
    "fq_pie": ("dq_rate_estimator",),
    "dualpi2": ("limit", "memory_limit"),
}
# Limits that Linux lets stand or drops down to otherwise than ours: raised only.
RAISED = {"pfifo": "limit", "bfifo": "limit", "pfifo_head_drop": "limit",
          "fq_codel": "limit memory_limit", "fq_pie": "limit memory_limit", "cake": "memlimit"}
# Where Linux drops all that waits when settings change, so that the queue is emptied first:
PURGED = ("red",)
# Disciplines whose changes, or resets, are left alone.
WITHOUT_CHANGE = ("sfb", "tbf", "htb")
WITHOUT_RESET = ("sfb", "htb", "pie", "fq_pie", "cake")


def draw(rng, kind, args, count, kept):
    """Some of that, each with the number of the packet behind which it is done, and what of settings
    the changes cover."""
    covers, out = [], []
    for place in sorted(rng.sample(range(count), rng.randint(1, 4))):
        what = rng.choice(["change"] * 4 + ["reset", "stats"])
        if not kept and not is_drawn(what, kind, args):
            what = "stats"
        if what == "change":
            if kind in PURGED and not kept:
                out.append((place, "reset"))
            what, changed, args = change(rng, kind, args, kept)
            covers += [f"change {kind} {key}" for key in changed]
        else:
            covers.append(f"{what} {kind}")
        out.append((place, what))
    return out, covers


def is_drawn(what, kind, args):
    """False for what ours does otherwise than Linux (ledger.toml)."""
    if what == "reset":
        # Keys of an sfq that were drawn before stay in Linux.
        is_keyed = kind == "sfq" and any(arg.startswith("perturb=") for arg in args)
        # Linux's red keeps what it has adapted.
        is_adapted = kind == "red" and "adaptive=1" in args
        return not is_keyed and not is_adapted and not {kind, *leaves(args)} & set(WITHOUT_RESET)
    if kind == "cake" and "autorate=1" in args:
        # Linux keeps the rate that was found as the one that was set.
        return what == "stats"
    if kind == "fq_codel" and any(arg.startswith("memory_limit=") for arg in args):
        # Any change of a queue that is full by memory drops from it.
        return False
    return what == "stats" or kind not in UNCHANGED + WITHOUT_CHANGE


def change(rng, kind, args, kept):
    """The end of a line, the settings that it changes, and the arguments after it."""
    if kind in ("drr", "htb"):
        return change_classes(rng, kind, args, kept)
    old = dict(arg.split("=", 1) for arg in args)
    get = settings(rng, kind, old, kept)
    line = f"change,{options(kind, get).hex()}"
    if kind in WORDS:
        line += f",{drawn.words(kind, get)}"
    return line, list(get), [f"{key}={value}" for key, value in {**old, **get}.items()]


def settings(rng, kind, old, kept):
    """Other settings: of disciplines that take some of them, some."""
    get = any_settings(rng, kind)
    if kept:
        return get
    for key in RAISED.get(kind, "").split():
        if key in get and get[key] < int(old.get(key, 1 << 32)):
            # Where the default is in force nobody knows here whether it would be raised.
            del get[key]
            if key in old:
                get[key] = int(old[key])
    if kind == "dualpi2" and get.get("protection") == int(old.get("protection", 10)):
        # Said again, it makes Linux forget the credit.
        del get["protection"]
    if kind == "cake" and not get.get("rate"):
        # Without a rate Linux keeps the old one's schedule.
        get.pop("rate", None)
    if kind == "cake" and "memlimit" not in old:
        # These make a limit, which may be lower.
        get = {key: value for key, value in get.items() if key not in ("rate", "rtt", "target")}
    return {key: value for key, value in get.items() if key not in NOT_CHANGED.get(kind, ())}


def any_settings(rng, kind):
    if kind == "cake":
        _, said = drawn.draw_cake(rng)
        get = {**pairs(said), "ingress": rng.randrange(2), "wash": rng.randrange(2),
               "ack": rng.randrange(3)}
        get = drawn.some(rng, {key: [int(value)] for key, value in get.items()})
        return {**get, "memlimit": rng.choice([32768, 100000])}
    if kind in ("pfifo", "bfifo", "pfifo_head_drop"):
        return {"limit": rng.choice(drawn.CHILDREN[kind]["limit"])}
    if kind not in drawn.CHILDREN:
        return drawn.draw_plain(rng, kind)
    choices = {key: [0, 1] if key in FLAGS else values
               for key, values in drawn.CHILDREN[kind].items() if key not in FIXED.get(kind, ())}
    return drawn.some(rng, choices, 0.3) or {"limit": rng.choice(choices["limit"])}


def change_classes(rng, kind, args, kept):
    """One class, or what hangs below it, gets other settings."""
    place = rng.choice([n for n, arg in enumerate(args) if is_changeable(arg)])
    key, value = args[place].split("=", 1)
    name, *parts = value.split(";")
    if key == "class":
        said = pairs(parts)
        choices = dict(quantum=[300, 1514, 3000, 9000])
        if kind == "htb":
            choices = dict(rate=[200000, 1000000, 2000000], ceil=[2000000, 5000000],
                           burst=[1600, 6000], cburst=[1600, 8000], prio=[0, 1, 2],
                           quantum=[1514, 3000])
        new = drawn.some(rng, choices) or {"quantum": 1514}
        said.update(new)
        value = ";".join([name, *(f"{key}={value}" for key, value in said.items())])
        number, parent, body = class_options(kind, value)
        what = f"class:{parent:x}:{number:x}:{body.hex()}"
        changed = [f"class {key}" for key in new]
    else:
        leaf, *parts = parts
        said = pairs(parts)
        new = settings(rng, leaf, said, kept)
        if not kept and new.get("limit", 1 << 32) < int(said.get("limit", 1 << 32)):
            # What the class above has taken out to look at is dropped first in Linux.
            del new["limit"]
        said.update(new)
        value = ";".join([name, leaf, *(f"{key}={value}" for key, value in said.items())])
        what = f"leaf:{minor(name):x}:{options(leaf, new).hex()}"
        changed = [f"leaf {leaf} {key}" for key in new]
    args = [*args[:place], f"{key}={value}", *args[place + 1:]]
    return f"change,{what},{class_words(kind, args)}", changed, args


def leaves(args):
    """Names of the disciplines below classes."""
    values = [arg.split("=", 1)[1] for arg in args if arg.startswith("leaf=")]
    return [value.split(";")[1] for value in values]


def is_changeable(arg):
    key, value = arg.split("=", 1)
    if key == "leaf":
        return is_drawn("change", value.split(";")[1], value.split(";"))
    return key == "class"


def class_words(kind, args):
    """Words that say all of a discipline with classes."""
    get = [arg.split("=", 1) for arg in args]
    leaves = dict(value.split(";", 1) for key, value in get if key == "leaf")
    out = [kind, *(word for key, value in get if key in ("default", "r2q", "direct_qlen") for word in (key, value))]
    for name, *parts in (value.split(";") for key, value in get if key == "class"):
        said = {key: value for key, value in pairs(parts).items() if value != "root"}
        out += ["class", name, *(word for pair in said.items() for word in pair)]
        if name in leaves:
            leaf, *parts = leaves[name].split(";")
            said = {key: int(value) for key, value in pairs(parts).items()}
            out.append(drawn.words(leaf, said))
    return " ".join(out)
