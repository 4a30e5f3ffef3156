#!/usr/bin/env python3
"""A terminal's screen (`tmux capture-pane -e -p`) on standard input as a page on standard output."""

import html
import re
import sys

COLOURS = ["#000", "#c33", "#3a3", "#ff0", "#48f", "#c3c", "#3cc", "#ddd"]


def style(codes):
    """What `codes`, those in force, look like."""
    front, back = "#ddd", "#000"
    for code in codes:
        if 30 <= code <= 37:
            front = COLOURS[code - 30]
        elif 40 <= code <= 47:
            back = COLOURS[code - 40]
    if 7 in codes:
        front, back = back, front
    words = [f"color:{front}", f"background:{back}"]
    words += ["font-weight:bold"] if 1 in codes else []
    words += ["opacity:.7"] if 2 in codes else []
    words += ["text-decoration:underline"] if 4 in codes else []
    return ";".join(words)


def after(codes, said):
    """The codes in force after those that were `said`."""
    # A palette's colour, as far as it has one of the sixteen.
    said = re.sub(r"\b38;5;(\d)\b", lambda m: str(30 + int(m[1]) % 8), said or "0")
    for code in map(int, said.split(";")):
        code = code - 60 if 90 <= code <= 107 else code
        ended = {22: (1, 2), 24: (4,), 27: (7,)}.get(code, (code,))
        is_colour = 30 <= code <= 49
        codes = [one for one in codes if one not in ended and not (is_colour and one // 10 == code // 10)]
        if code == 0:
            codes = []
        elif code not in (22, 24, 27, 39, 49):
            codes.append(code)
    return codes


codes, out = [], []
for part in re.split(r"(\x1b\[[\d;]*m)", sys.stdin.read().rstrip("\n")):
    sequence = re.fullmatch(r"\x1b\[([\d;]*)m", part)
    if sequence:
        codes = after(codes, sequence[1])
    elif part:
        out.append(f'<span style="{style(codes)}">{html.escape(part)}</span>')
print('<!doctype html><meta charset="utf-8"><body style="margin:12px 24px;background:#000">')
print(f'<pre style="margin:0;font:15px/1.25 \'DejaVu Sans Mono\',monospace">{"".join(out)}</pre>')
