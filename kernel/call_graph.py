"""The call graph of an object file, an archive or an executable, as `objdump` of binutils shows it.

Functions are nodes; calls, jumps to other functions and references to functions are edges. Tables
of functions, as jump tables and vtables are, are followed as well; but not those that have a root
among their entries. These are the vtables of the data path's own traits: the methods of theirs
that packets need are roots themselves, and the others, which change settings, are not asked for.

In an executable no relocations are left, and tables are not followed.
"""

import collections
import os
import re
import subprocess
import sys

# Data path of disciplines and owners, whoever implements them in these crates, and what comes
# before it: reading of headers and hashing. Functions that C calls are roots, too, but for those
# that are never called while a packet waits: they make, name and free.
CRATES = r"simnel_(core|kernel)"
METHODS = {
    "Qdisc": "enqueue dequeue next_event peek lend placement backlog reset".split(),
    "Managed": "snapshot marked is_at_rest gate adopt".split(),
    "Gate": "open decide refused left found_empty".split(),
    "PacketOwner": "dropped keyed_hash ack_view expect".split(),
}
ROOTS = [
    re.compile(rf"^<{CRATES}::.* as simnel_core::qdisc::{trait}>::({'|'.join(methods)})$")
    for trait, methods in METHODS.items()
] + [re.compile(rf"^<?{CRATES}::(wire|flow)::"), re.compile(r"^simnel_(?!host_)\w+$")]
AT_LEISURE = re.compile(
    r"^simnel_(create(_parallel)?|is_parallel|take_line|lines_free|destroy|prepare|forget|options|statistics"
    r"|class|wants|counters(_free)?)$"
)

Call = collections.namedtuple("Call", "target depth")


class Function:
    """One function: its edges with the depth of the stack there, and the bytes it takes itself."""

    def __init__(self, name):
        self.name = name
        self.calls = []
        self.frame = 0
        self.aborts = False


def objdump(*arguments):
    command = [os.environ.get("CROSS_COMPILE", "") + "objdump", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        sys.exit(f"{command[0]} is missing: install binutils")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(command)}: {error.stderr.strip()}")
    return done.stdout.splitlines()


def demangle(names):
    names = list(names)
    done = subprocess.run(
        ["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True
    )
    hashes = re.compile(r"\[[0-9a-f]{8,16}\]|::h[0-9a-f]{16}$")
    plain = (hashes.sub("", name) for name in done.stdout.splitlines())
    return dict(zip(names, plain))


def called(target):
    """None where a register says what is called."""
    return None if isinstance(target, str) and target.startswith(INDIRECT) else target


MEMBER = re.compile(r"^(.+):\s+file format ")
SYMBOL = re.compile(r"^([0-9a-f]+) (.{7}) (\S+)\t([0-9a-f]+)\s+(?:\.hidden |\.internal )?(.+)$")
SECTION = re.compile(r"^Disassembly of section (.+):$")
LABEL = re.compile(r"^([0-9a-f]+) <(.+)>:$")
RELOCATION = re.compile(r"^\s+([0-9a-f]+): (R_\S+)\s+(.+)$")
INSTRUCTION = re.compile(r"^\s+([0-9a-f]+):\s+(.+?)\s*$")
TABLE = re.compile(r"^RELOCATION RECORDS FOR \[(.+)\]:$")
ENTRY = re.compile(r"^([0-9a-f]+) (R_\S+)\s+(.+)$")
TARGET = re.compile(r"^(.*?)([-+]0x[0-9a-f]+)?$")
PLACE = re.compile(r"([0-9a-f]+) <([^>]+?)(\+0x[0-9a-f]+)?>$")
# Instructions of x86-64, and of aarch64.
ENDS = re.compile(r"^(ret|jmp|ud2|hlt)|^(b|br|brk)$")
BRANCHES = re.compile(r"^(j|b\.|cbn?z$|tbn?z$|b$)")
TRAPS = ("ud2", "brk")
# What a kernel against speculation has in the place of `call *%reg` and of `ret`.
INDIRECT, RETURN = "__x86_indirect_thunk_", "__x86_return_thunk"


class Graph:
    """All functions by name, and which of them are roots."""

    def __init__(self, path):
        self.functions = {}
        # Names by place, and places by name, of each member of an archive.
        self.at = collections.defaultdict(list)
        self.places = {}
        self.tables = collections.defaultdict(list)
        self.read_symbols(objdump("-tw", path))
        self.read_tables(objdump("-rw", path))
        self.read_code(objdump("-dr", "--no-show-raw-insn", path))
        self.plain = demangle({name for name in self.mentioned()})
        self.roots = sorted(name for name in self.aliases if self.is_root(name))
        self.root_bodies = {self.canonical(name) for name in self.roots}

    def is_root(self, name):
        plain = self.plain.get(name, name)
        return any(root.search(plain) for root in ROOTS) and not AT_LEISURE.search(plain)

    def mentioned(self):
        for name, function in self.functions.items():
            yield name
            yield from (c.target for c in function.calls if isinstance(c.target, str))
        yield from self.aliases

    def read_symbols(self, lines):
        member = ""
        self.aliases = {}
        for line in lines:
            if found := MEMBER.match(line):
                member = found[1]
            elif found := SYMBOL.match(line):
                address, flags, section, size, name = found.groups()
                if section == "*UND*" or "F" not in flags and "d" in flags:
                    continue
                place = (member, section, int(address, 16))
                if "F" in flags:
                    self.at[place[:2]].append((int(address, 16), int(size, 16), name))
                    self.aliases.setdefault(name, place)
                self.places.setdefault((member, name), place)
        self.body = {}
        for place, symbols in self.at.items():
            symbols.sort()
            for address, _, name in symbols:
                self.body.setdefault((*place, address), name)

    def canonical(self, name):
        """The one name of a function that has several."""
        place = self.aliases.get(name)
        return self.body.get(place, name) if place else name

    def size(self, name):
        """Bytes of code of a function."""
        member, section, address = self.aliases[name]
        return max(size for start, size, _ in self.at[member, section] if start == address)

    def resolve(self, member, text, pc_relative):
        """The function's name, or the table's (member, section), that a relocation is for."""
        name, addend = TARGET.match(text).groups()
        if name in self.aliases:
            return self.canonical(name)
        if (member, name) in self.places:
            return self.places[member, name][:2]
        offset = int(addend or "0", 16) + (4 if pc_relative else 0)
        if (member, name) in self.at:
            for address, size, found in self.at[member, name]:
                if address <= offset < address + max(size, 1):
                    return self.canonical(found)
            return None
        return (member, name) if name.startswith(".") else name

    def read_tables(self, lines):
        member = section = ""
        for line in lines:
            if found := MEMBER.match(line):
                member = found[1]
            elif found := TABLE.match(line):
                section = found[1]
            elif (found := ENTRY.match(line)) and (member, section) not in self.at:
                if not section.startswith((".debug", ".eh_frame")):
                    target = self.resolve(member, found[3], found[2].endswith("PC32"))
                    self.tables[member, section].append(target)

    def read_code(self, lines):
        member, section, function, body = "", "", None, []
        for line in lines:
            if found := INSTRUCTION.match(line):
                if (reloc := RELOCATION.match(line)) and body:
                    body[-1][2].append(
                        self.resolve(member, reloc[3], "PC" in reloc[2] or "PLT" in reloc[2])
                    )
                elif function:
                    body.append((int(found[1], 16), found[2], []))
            elif found := LABEL.match(line):
                self.finish(function, body)
                name = self.body.get((member, section, int(found[1], 16)))
                # Labels inside a function belong to it.
                if name:
                    function, body = Function(name), []
            elif found := SECTION.match(line):
                self.finish(function, body)
                section, function, body = found[1], None, []
            elif found := MEMBER.match(line):
                member = found[1]
        self.finish(function, body)

    def finish(self, function, body):
        """Takes the body of a function: its edges, and how deep the stack is at each."""
        if not function or not body:
            return
        self.functions[function.name] = function
        stack = Stack()
        for address, text, targets in body:
            if RETURN in targets:
                text, targets = "ret", []
            depth = stack.step(address, text)
            opcode = text.split()[0]
            is_jump = opcode.startswith(("call", "j")) or "call" in text.split()[:3]
            ends_at = PLACE.search(text)
            if targets:
                function.calls += [Call(called(target), depth) for target in targets if target]
            elif ends_at and ends_at[2] in self.aliases:
                target = self.canonical(ends_at[2])
                if target != function.name or opcode.startswith("call") and not ends_at[3]:
                    function.calls.append(Call(target, depth))
            elif is_jump and "*" in text and opcode.startswith("call") or opcode == "blr":
                function.calls.append(Call(None, depth))
            function.aborts |= opcode in TRAPS
        function.frame = stack.deepest

    def callees(self, name):
        """Functions that `name` calls or refers to, with the depth of its stack there."""
        function = self.functions.get(name)
        if not function:
            return
        seen = set()
        for target, depth in function.calls:
            if target is None:
                yield None, depth
            elif isinstance(target, str):
                yield target, depth
            elif target not in seen:
                seen.add(target)
                yield from ((entry, depth) for entry in self.entries(target) if entry != name)

    def entries(self, table):
        """Functions of a table and of those that it refers to; none of a vtable of the data path."""
        todo, seen, found = [table], {table}, []
        while todo:
            for entry in self.tables.get(todo.pop(), ()):
                if isinstance(entry, str):
                    if entry in self.root_bodies:
                        return []
                    found.append(entry)
                elif entry and entry not in seen:
                    seen.add(entry)
                    todo.append(entry)
        return found


class Stack:
    """The stack's depth along a function: bytes below the return address."""

    AMOUNT = re.compile(r"\$(-?0x[0-9a-f]+),%rsp$")
    OFFSET = re.compile(r"^lea\s+(-?0x[0-9a-f]+)?\((%r\w+)\),%rsp$")
    PROBE = re.compile(r"^lea\s+-(0x[0-9a-f]+)\(%rsp\),%r11$")
    # aarch64 saves registers and moves the pointer in one.
    MOVE = re.compile(r"^(sub|add)\s+sp, sp, #(0x[0-9a-f]+)(, lsl #12)?$")
    SAVE = re.compile(r"^st[pr]\s.*\[sp, #-(\d+)\]!$")
    RESTORE = re.compile(r"^ld[pr]\s.*\[sp\], #(\d+)$")

    def __init__(self):
        self.depth = self.deepest = 0
        self.base = 0
        self.targets = {}
        self.ended = None
        self.probed = None

    def step(self, address, text):
        """Depth at the instruction, and notes what it does."""
        if self.ended is not None:
            self.depth = self.targets.get(address, self.ended)
            self.ended = None
        before = self.depth
        opcode, _, rest = text.partition(" ")
        rest = rest.strip()
        if opcode.startswith("push"):
            self.depth += 8
        elif opcode.startswith("pop"):
            self.depth -= 8
        elif found := self.MOVE.match(text):
            amount = int(found[2], 16) << (12 if found[3] else 0)
            self.depth += amount if found[1] == "sub" else -amount
        elif found := self.SAVE.match(text):
            self.depth += int(found[1])
        elif found := self.RESTORE.match(text):
            self.depth -= int(found[1])
        elif found := self.PROBE.match(text):
            self.probed = self.depth + int(found[1], 16)
        elif opcode == "cmp" and "%rsp" in rest and self.probed is not None:
            self.depth, self.probed = self.probed, None
        elif (found := self.AMOUNT.search(rest)) and opcode in ("sub", "add", "and"):
            amount = int(found[1], 16)
            if amount >= 1 << 63:
                amount -= 1 << 64
            self.depth += {"sub": amount, "add": -amount, "and": max(-amount - 8, 0)}[opcode]
        elif text.startswith("mov") and rest == "%rsp,%rbp":
            self.base = self.depth
        elif found := self.OFFSET.match(text):
            offset = int(found[1] or "0", 16)
            self.depth = (self.base if found[2] == "%rbp" else self.depth) - offset
        elif text.startswith("mov") and rest == "%rbp,%rsp":
            self.depth = self.base
        elif BRANCHES.match(opcode) and (found := PLACE.search(text)):
            self.targets.setdefault(int(found[1], 16), self.depth)
        self.deepest = max(self.deepest, self.depth)
        if ENDS.match(opcode):
            self.ended = self.deepest if opcode in ("ret", *TRAPS) else self.depth
        return before
