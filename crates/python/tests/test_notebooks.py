"""Every notebook runs from its first cell to its last: as Python, for which no Jupyter is needed."""

import json

import pytest

from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "crates/python/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    pytest.importorskip("matplotlib")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    variables = {}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "results are not kept"
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), variables)
    done = variables["done"]
    assert done.figures and done._repr_html_()


def test_each_paper_has_one():
    assert len(NOTEBOOKS) == 5
