"""One colour, dash and marker for each discipline, as on the lab's pages."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Union

from . import _simnel

#: matplotlib's names of the lab's markers; the last is an hourglass.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", ((-1, 1), (1, 1), (-1, -1), (1, -1)))


def looks(names: Union[str, Iterable[str]]) -> Dict[str, Dict[str, Any]]:
    """matplotlib's words for a line of each discipline of ``names``.

    They are those of the lab's pages and figures: no two of ``names`` look alike, also without
    colour. Ask for all that one figure shows at once.

    >>> import simnel
    >>> simnel.looks(["cake", "fq_codel"])["cake"]["color"]
    '#0072b2'
    """
    names = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    return {
        name: {
            "color": colour,
            # Lengths are in units of the line's width there, of which the lab's lines have two.
            "linestyle": (0, tuple(float(length) / 2 for length in dash.split()))
            if dash != "none"
            else "solid",
            "marker": _MARKERS[marker],
            "markevery": 0.1,
        }
        for name, (colour, dash, marker) in zip(names, _simnel.looks(names))
    }
