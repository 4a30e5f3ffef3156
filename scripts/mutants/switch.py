"""Puts many small changes into the source of a crate, each behind a switch.

What cargo-mutants would build one by one is built once: where it replaces `a + b` by `a - b`, the
source then says `(if on(7) { a - b } else { a + b })`, and the environment says which number is on.
A change is wrapped in the largest expression around it, so that precedence decides as it would in the
changed text. Tokens are enough to find that; where they mislead, the compiler objects, and the change
is left out. What no switch can express are constants: nothing is read from the environment there.
"""

import contextlib
import re

TOKEN = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | r(?P<raw>\#*)"(?:.|\n)*?"(?P=raw) | b?"(?:\\.|[^"\\])*"
    | b?'(?:\\.|[^'\\])' | b?'\\(?:x..|u\{[^}]*\})' | '[A-Za-z_]\w* | [A-Za-z_]\w*
    | \d\w*(?:\.\d\w*)? | <<= | >>= | \.\.= | \.\.\. | && | \|\| | << | >> | => | -> | == | !=
    | <= | >= | \+= | -= | \*= | /= | %= | &= | \|= | \^= | :: | \.\. | \s+ | .""",
    re.S | re.X,
)
ASSIGNMENTS = {"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
# What goes on with an expression that a brace has ended on the line before.
CONTINUATIONS = set(". ? else + / % == != < > <= >= ^ << >> as ..= ) ] } , ;".split())
# Words that no value ends with.
KEYWORDS = {"move", "return", "else", "in", "if", "while", "match", "break", "unsafe"}
SWITCH = "crate::mutants::on"

# How the crate under test asks which change is on. With MUTANTS_REACHED it writes down each number
# that is asked for, once, and none is on. The environment is read before `main`, since that allocates,
# which some tests count.
RUNTIME = """\
extern crate std;

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

const COLLECT: u32 = u32::MAX;
static CHOSEN: AtomicU32 = AtomicU32::new(0);
static SEEN: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
static REACHED: std::sync::OnceLock<std::fs::File> = std::sync::OnceLock::new();

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = choose;

extern "C" fn choose() {
    let said = std::env::var("MUTANT").ok().and_then(|number| number.parse().ok());
    let mut chosen = said.unwrap_or(0);
    if let Some(path) = std::env::var_os("MUTANTS_REACHED") {
        let _ = REACHED.set(std::fs::File::create(path).unwrap());
        chosen = COLLECT;
    }
    CHOSEN.store(chosen, Relaxed);
}

#[inline]
pub fn on(number: u32) -> bool {
    let chosen = CHOSEN.load(Relaxed);
    if chosen == COLLECT {
        note(number);
    }
    chosen == number
}

#[cold]
#[inline(never)]
fn note(number: u32) {
    let seen = &SEEN[number as usize];
    if !seen.load(Relaxed) && !seen.swap(true, Relaxed) {
        REACHED.get().unwrap().write_all(&number.to_ne_bytes()).unwrap();
    }
}
"""


class Inexpressible(Exception):
    """No switch can do this here."""


class Source:
    """A file of Rust and the changes in it, by number."""

    def __init__(self, text):
        self.text = text
        self.lines = [0] + [at + 1 for at, char in enumerate(text) if char == "\n"]
        self.tokens = [
            (match.start(), match.end(), match[0])
            for match in TOKEN.finditer(text)
            if not match[0].isspace() and not match[0].startswith(("//", "/*"))
        ]
        self.at = {token[0]: index for index, token in enumerate(self.tokens)}
        self.closures = self.ends_of_closure_arguments()
        self.expressions = {}  # (start, end): [(number, changed text)]
        self.insertions = {}  # position: [(number, text before, text after)]
        self.constant = {}  # number: the `const` of the function around it

    def add(self, number, mutant):
        """A change as cargo-mutants lists it."""
        start, end = (self.position(mutant["span"][edge]) for edge in ("start", "end"))
        genre, replacement = mutant["genre"], mutant["replacement"]
        if mutant["function"]:
            const = self.const_of(self.position(mutant["function"]["span"]["start"]))
            if const is not None:
                self.constant[number] = const
        if genre == "FnValue":
            if replacement.startswith("::std::iter::"):
                raise Inexpressible("an `impl Iterator` is of one type")
            value = "" if replacement == "()" else f" {replacement}"
            self.insertions.setdefault(start, []).append((number, f"{{ return{value}; }} "))
        elif genre == "MatchArmGuard":
            self.change((start, end), number, start, end, replacement)
        elif genre == "MatchArm":
            self.delete_arm(number, start)
        elif genre == "StructField":
            # Its value is then that of the base.
            brace = self.open_before(self.index(start))
            if self.text[end:].lstrip().startswith(","):
                end = self.text.index(",", end) + 1
            self.change(self.around(brace - 1), number, start, end, "")
        else:
            self.change(self.around(self.index(start)), number, start, end, replacement)

    def change(self, expression, number, start, end, replacement):
        if not (expression[0] <= start and end <= expression[1]):
            raise Inexpressible("the expression around it is not found")
        for other in self.expressions:
            if other[0] < expression[0] < other[1] < expression[1] or (
                expression[0] < other[0] < expression[1] < other[1]
            ):
                raise Inexpressible("the expressions overlap")
        text = self.text[expression[0] : start] + replacement + self.text[end : expression[1]]
        self.expressions.setdefault(expression, []).append((number, text))

    def delete_arm(self, number, start):
        """An arm that is never taken: what follows takes its place."""
        arrow = self.index(start)
        while self.word(arrow) not in ("=>", "if"):
            arrow = self.forth(arrow)
        if self.word(arrow) == "=>":
            at = self.tokens[arrow][0]
            self.insertions.setdefault(at, []).append((number, None))
            return
        guard = arrow + 1
        while self.word(arrow) != "=>":
            arrow = self.forth(arrow)
        span = self.tokens[guard][0], self.tokens[arrow - 1][1]
        self.change(span, number, *span, "false")

    def position(self, place):
        return self.lines[place["line"] - 1] + place["column"] - 1

    def index(self, position):
        if position not in self.at:
            raise Inexpressible("no token begins there")
        return self.at[position]

    def word(self, index):
        return self.tokens[index][2] if 0 <= index < len(self.tokens) else ""

    def const_of(self, function):
        """The place of the `const` of a function that begins at this position."""
        index = self.at.get(function)
        if index is None:  # at a comment of its documentation
            index = next(i for i, token in enumerate(self.tokens) if token[0] >= function)
        while self.word(index) != "fn":
            if self.word(index) == "const":
                return self.tokens[index][0]
            index = self.forth(index)
        return None

    def forth(self, index):
        """The token behind this one, or behind the bracket that it opens."""
        depth = 0
        while True:
            depth += (self.word(index) in ("(", "[", "{")) - (self.word(index) in (")", "]", "}"))
            index += 1
            if depth <= 0:
                return index
            if index >= len(self.tokens):
                raise Inexpressible("a bracket is not closed")

    def back(self, index):
        """The token before this one, or before the bracket that it closes."""
        depth = 0
        while True:
            depth += (self.word(index) in (")", "]", "}")) - (self.word(index) in ("(", "[", "{"))
            index -= 1
            if depth <= 0:
                return index
            if index < 0:
                raise Inexpressible("a bracket is not opened")

    def open_before(self, index):
        while self.word(index) != "{":
            index = self.back(index)
            if index < 0:
                raise Inexpressible("no brace before it")
        return index

    def around(self, index):
        """From where to where the largest expression around a token goes."""
        first, condition = self.first_of(index - 1)
        last, has_if = index + 1, False
        while last < len(self.tokens):
            word = self.word(last)
            if word == "{" and condition or word in (")", "]", "}", ",", ";", "=>"):
                break
            if word == "else" and not has_if:
                break
            if word == "=" or word in ASSIGNMENTS:
                raise Inexpressible("left of an assignment")
            has_if |= word == "if"
            last = self.forth(last)
        return self.tokens[first][0], self.tokens[last - 1][1]

    def first_of(self, index):
        """The first token of the expression, and whether a brace ends it (as in a condition)."""
        condition = False
        while index >= 0 and index not in self.closures:
            word = self.word(index)
            if word == "}":
                # The end of a statement, unless the expression goes on behind it.
                newline = "\n" in self.text[self.tokens[index][1] : self.tokens[index + 1][0]]
                if newline and self.word(index + 1) not in CONTINUATIONS:
                    break
            elif word in ("(", "[", "{", ",", ";", "=>", "=", ":") or word in ASSIGNMENTS:
                break
            elif word in ("return", "break", "in", "else"):
                break
            elif word in ("if", "while", "match"):
                condition = True
                break
            elif word == "let":
                raise Inexpressible("part of a pattern")
            index = self.back(index)
        if index in self.closures:
            return index + 1, False
        if self.word(index) == "in" or self.word(index) == "=" and self.is_condition(index):
            condition = True
        return index + 1, condition

    def ends_of_closure_arguments(self):
        """The bars behind which bodies of closures begin."""
        ends = set()
        for index in range(1, len(self.tokens)):
            before = self.word(index - 1)
            value = before[-1] in "_)]}?\"'" or before[-1].isalnum()
            if index in ends or value and before not in KEYWORDS:
                continue
            if self.word(index) == "||":
                ends.add(index)
            elif self.word(index) == "|":
                end = index + 1
                while self.word(end) not in ("|", ""):
                    end = self.forth(end)
                ends.add(end)
        return ends

    def is_condition(self, equals):
        """Whether the `let` of this `=` follows an `if`, a `while` or another condition."""
        index = equals - 1
        while index > 0 and self.word(index) not in ("let", ";", "{", "}"):
            index = self.back(index)
        return self.word(index) == "let" and self.word(index - 1) in ("if", "while", "&&")

    def render(self, without, firm):
        """The text with all changes but those `without`, and where in its bytes each one is.

        A function loses its `const`, which no switch can have, unless it is `firm`. Places are (start,
        end, number, whether that is the changed text).
        """
        text = self.text
        for const in {self.constant[n] for n in self.constant if n not in without} - firm:
            text = text[:const] + "     " + text[const + 5 :]
        expressions = {
            span: kept
            for span, changes in self.expressions.items()
            if (kept := [change for change in changes if change[0] not in without])
        }
        insertions = {
            at: kept
            for at, changes in self.insertions.items()
            if (kept := [change for change in changes if change[0] not in without])
        }
        out = Output()
        spans = sorted(expressions, key=outer_first)
        self.render_part(out, text, 0, len(text), spans, expressions, insertions)
        return "".join(out.parts), out.places

    def render_part(self, out, text, at, end, spans, expressions, insertions):
        """The text between two positions; `spans` are the expressions in it, the outer ones first."""
        spans = list(spans)
        while True:
            span = spans.pop(0) if spans else None
            until = span[0] if span else end
            for place in sorted(p for p in insertions if at <= p < until or span and p == until):
                out.put(text[at:place])
                at = place
                for number, statement in insertions.pop(place):
                    with out.place(number, True):
                        arm = statement is None
                        out.put(f" if !{SWITCH}({number}) " if arm else f"if {SWITCH}({number}) {statement}")
            out.put(text[at:until])
            if not span:
                return
            inner = [s for s in spans if s[1] <= span[1]]
            spans = spans[len(inner) :]
            out.put("(")
            for number, changed in expressions[span]:
                with out.place(number, False):
                    out.put(f"if {SWITCH}({number}) ")
                out.put("{ ")
                with out.place(number, True):
                    out.put(changed)
                out.put(" } else ")
            out.put("{ ")
            begin = out.bytes
            self.render_part(out, text, *span, inner, expressions, insertions)
            out.places += [(begin, out.bytes, number, False) for number, _ in expressions[span]]
            out.put(" })")
            at = span[1]


def arms(text):
    """The changes that delete arms of the match whose braces the text begins with."""
    source, index, found = Source(text), 1, []
    while source.word(index) != "}":
        if source.word(index) == "on":
            found.append(int(source.word(index + 2)))
        index = source.forth(index)
    return found


class Output:
    """Text with the places of changes in it, in bytes as the compiler counts."""

    def __init__(self):
        self.parts, self.places, self.bytes = [], [], 0

    def put(self, text):
        self.parts.append(text)
        self.bytes += len(text.encode())

    @contextlib.contextmanager
    def place(self, number, changed):
        begin = self.bytes
        yield
        self.places.append((begin, self.bytes, number, changed))


def outer_first(span):
    return span[0], -span[1]
