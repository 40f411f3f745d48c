"""Changes of different cells of one notebook do not conflict, and nothing that a side changed is lost."""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.chance import SOAK, chance
from tests.git.parts import ANNA, add, commit, git, inside
from workbench.git import Repository, notebook_merge
from workbench.git.notebook_merge import Unmergeable
from workbench.git.resolution import Resolution
from workbench.rules import notebook_diff

pytest.importorskip("nbdime")

PAIRS = 500 if SOAK else 50
Cell = dict[str, Any]


def cell(name: str, *lines: str, output: str = "", count: int | None = None, kind: str = "code") -> Cell:
    made = {"cell_type": kind, "id": name, "metadata": {}, "source": [f"{line}\n" for line in lines]}
    outputs = [{"output_type": "stream", "name": "stdout", "text": [output]}] if output else []
    return made | ({"outputs": outputs, "execution_count": count} if kind == "code" else {})


def notebook(cells: list[Cell], minor: int = 5, **more: Any) -> bytes:
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    if minor < 5:
        cells = [{key: value for key, value in cell.items() if key != "id"} for cell in cells]
    document = {"cells": cells, "metadata": metadata | more, "nbformat": 4, "nbformat_minor": minor}
    return json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"


class Side:
    """A notebook with changes whose every new line is only there, and what they concern."""

    def __init__(self, draw: random.Random, name: str, base: list[Cell]) -> None:
        self.cells, self.touched, self.removed, self.has_moved = deepcopy(base), set[str](), set[str](), False
        self._draw, self._name = draw, name
        for _ in range(draw.randint(1, 3)):
            draw.choice([self.edit, self.edit, self.edit, self.run, self.insert, self.remove, self.tag, self.move])()

    def edit(self) -> None:
        cell = self._some()
        at = self._draw.randrange(len(cell["source"]))
        cell["source"][at : at + self._draw.randrange(2)] = [self._line()]
        self.run_from(cell)

    def run(self) -> None:
        self.run_from(self.cells[0])

    def run_from(self, cell: Cell) -> None:
        for later in self.cells[self.cells.index(cell) :]:
            if later["cell_type"] == "code":
                later["execution_count"] = self._draw.randrange(100)
                later["outputs"] = [{"output_type": "stream", "name": "stdout", "text": [self._draw.choice("abc")]}]

    def insert(self) -> None:
        made = cell(f"{self._name}{self._draw.randrange(10**9)}", self._line().strip())
        self.cells.insert(self._draw.randrange(len(self.cells) + 1), made)

    def remove(self) -> None:
        if len(self.cells) > 2 and not (gone := self._some())["id"].startswith(self._name):
            self.cells.remove(gone)
            self.removed.add(gone["id"])

    def tag(self) -> None:
        self._some()["metadata"]["tags"] = [self._name]

    def move(self) -> None:
        if self._draw.random() < 0.2:
            self.cells.insert(0, self.cells.pop(self._draw.randrange(len(self.cells))))
            self.has_moved = True

    def _some(self) -> Cell:
        cell = self._draw.choice(self.cells)
        self.touched.add(cell["id"])
        return cell

    def _line(self) -> str:
        return f"{self._name} = {self._draw.randrange(10**9)}\n"

    @property
    def lines(self) -> list[str]:
        """The lines that it made and has not changed again."""
        return [line for cell in self.cells for line in cell["source"] if line.startswith(self._name)]


def sources(text: bytes) -> dict[str, list[str]]:
    return {cell.get("id", number): cell["source"] for number, cell in enumerate(json.loads(text)["cells"])}


@pytest.mark.parametrize("minor", [5, 4])
def test_generated_pairs_of_changes_lose_nothing_and_seldom_conflict_without_need(minor: int) -> None:
    draw = chance(f"notebooks {minor}")
    apart = in_vain = 0
    for _ in range(PAIRS):
        base = [
            cell(
                f"c{i}", *(f"x{i} = {draw.randrange(10**6)}" for _ in range(draw.randint(1, 5))), output="a", kind=kind
            )
            for i, kind in enumerate(draw.choices(["code", "markdown"], [3, 1], k=draw.randint(4, 10)))
        ]
        ours, theirs = Side(draw, "ours", base), Side(draw, "theirs", base)
        are_in_place = not ours.has_moved and not theirs.has_moved
        is_apart = are_in_place and not ours.touched & theirs.touched
        apart += is_apart
        try:
            merged = notebook_merge.merge(*(notebook(cells, minor) for cells in (base, ours.cells, theirs.cells)))
        except Unmergeable:
            in_vain += is_apart
            continue
        nbformat.validate(json.loads(merged))
        lines = [line for source in sources(merged).values() for line in source]
        assert [line for side in (ours, theirs) for line in side.lines if line not in lines] == []
        untouched = [c for c in base if c["id"] not in ours.removed | theirs.removed | ours.touched | theirs.touched]
        assert [c["source"] for c in untouched if c["source"] not in sources(merged).values()] == []
        if minor == 5:
            names = list(sources(merged))
            assert not (ours.removed | theirs.removed) & set(names)
            for side in (ours, theirs) if are_in_place else ():
                kept = [c["id"] for c in side.cells if c["id"] in names]
                assert [name for name in names if name in kept] == kept
        exec("\n".join("".join(c["source"]) for c in json.loads(merged)["cells"] if c["cell_type"] == "code"), {})
    assert apart > PAIRS / 5
    assert in_vain <= apart * 0.05


BASE = [cell(f"c{i}", f"x{i} = {i}", f"print(x{i})", output=f"{i}\n", count=i) for i in range(5)]


def changed(at: int, line: str, count: int = 7, minor: int = 5, cells: list[Cell] = BASE) -> bytes:
    """The notebook after one cell was edited and all were run."""
    cells = deepcopy(cells)
    cells[at]["source"] = [line]
    for each in cells:
        each.update(execution_count=count, outputs=[{"output_type": "stream", "name": "stdout", "text": [line]}])
    return notebook(cells, minor)


def put(place: Path, text: bytes, name: str = "a.ipynb") -> str:
    return commit(place, {name: text.decode()})


def stage(root: Path, base: bytes, ours: bytes, theirs: bytes) -> tuple[str, str]:
    """Commits of two branches that changed one notebook."""
    put(root, base)
    git(root, "branch", "theirs")
    left = put(root, ours)
    git(root, "switch", "--quiet", "theirs")
    right = put(root, theirs)
    git(root, "switch", "--quiet", "main")
    return left, right


def at(root: Path, commit: str, name: str = "a.ipynb") -> dict[str, Any]:
    document: dict[str, Any] = json.loads(git(root, "show", f"{commit}:{name}"))
    return document


@pytest.mark.long
def test_outputs_of_both_sides_never_conflict_and_those_of_other_code_are_marked(root: Path, repo: Repository) -> None:
    left, right = stage(root, notebook(BASE), changed(1, "one = 1", 7), changed(3, "three = 3", 8))
    assert repo.predict_merges([(left, right), (right, left)]) == [
        repo.preview_merge(left, right),
        repo.preview_merge(right, left),
    ]
    done = at(root, repo.integrate(right, "main", "merge", ANNA).commit)
    nbformat.validate(done)
    assert [cell["source"][0] for cell in done["cells"]] == ["x0 = 0\n", "one = 1", "x2 = 2\n", "three = 3", "x4 = 4\n"]
    assert {(cell["execution_count"], cell["outputs"][0]["text"][0]) for cell in done["cells"][:3]} == {(7, "one = 1")}
    stale = [cell["metadata"].get("workbench", {}).get("stale_outputs", False) for cell in done["cells"]]
    assert stale == [False, False, False, True, True]
    assert git(root, "status", "--porcelain") == ""


@pytest.mark.long
def test_a_worktree_takes_a_notebook_of_its_target_cell_by_cell(root: Path, place: Path, repo: Repository) -> None:
    left, _ = stage(root, notebook(BASE), changed(1, "one = 1", 7), changed(3, "three = 3", 8))
    add(repo, place / "w", "work", "theirs")
    assert inside(place / "w").merge(left, "merge", ANNA) == []
    assert sources((place / "w" / "a.ipynb").read_bytes()) == {
        **{f"c{i}": [f"x{i} = {i}\n", f"print(x{i})\n"] for i in (0, 2, 4)},
        **{"c1": ["one = 1"], "c3": ["three = 3"]},
    }


@pytest.mark.long
def test_changes_of_one_cell_conflict_as_text_does(root: Path, place: Path, repo: Repository) -> None:
    left, right = stage(root, notebook(BASE), changed(1, "one = 1"), changed(1, "one = 2"))
    assert repo.preview_merge(left, right).conflicts == ("a.ipynb",)
    add(repo, place / "w", "work", "theirs")
    resolution = Resolution(inside(place / "w"))
    resolution.start(left, "merge", ANNA)
    assert resolution.unresolved() == ["a.ipynb"]
    text = (place / "w" / "a.ipynb").read_text()
    assert "<<<<<<< " in text
    assert "one = 1" in text
    assert "one = 2" in text


TWICE = [*BASE[:2], BASE[1] | {"source": ["again"]}, *BASE[3:]]
OLD = json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": []}]}, indent=1).encode()


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        pytest.param(OLD, OLD + b"\n\n", OLD.replace(b"3", b"2"), id="format 3"),
        pytest.param(
            notebook(TWICE), changed(1, "one = 1", cells=TWICE), changed(4, "four", cells=TWICE), id="an id twice"
        ),
        pytest.param(notebook(BASE, 4), changed(1, "one = 1", minor=4), changed(3, "three"), id="ids on one side"),
        pytest.param(b"{\n", b"{\n1\n", b"{\n2\n", id="no JSON"),
        pytest.param(notebook(BASE), b"[" * 200_000, changed(1, "one = 1"), id="nested too deeply"),
        pytest.param(notebook(BASE), changed(1, "one = 1"), b"\xff\0", id="binary"),
    ],
)
def test_what_is_no_valid_notebook_is_merged_as_text(
    base: bytes, ours: bytes, theirs: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Exception):  # noqa: B017  nbformat raises anything
        notebook_merge.merge(base, ours, theirs)
    files = [tmp_path / name for name in ("base", "ours", "theirs")]
    for file, text in zip(files, (base, ours, theirs), strict=True):
        file.write_bytes(text)
    expected = subprocess.run(
        ["git", "merge-file", "-p", "--quiet", *map(str, (files[1], files[0], files[2]))], capture_output=True
    )
    assert notebook_merge.main(*map(str, files), "7") == (expected.returncode != 0)
    if expected.returncode >= 0 and expected.stdout:
        assert re.sub(rb"(?m)^([<>]{7}) .*", rb"\1", files[1].read_bytes()) == re.sub(
            rb"(?m)^([<>]{7}) .*", rb"\1", expected.stdout
        )
    assert sorted(tmp_path.iterdir()) == sorted(files)


@pytest.mark.parametrize(
    ("of", "kept"),
    [
        pytest.param(lambda text: b"\xef\xbb\xbf" + text, lambda text: text.startswith(b"{\n "), id="a BOM"),
        pytest.param(
            lambda text: text.removesuffix(b"\n"), lambda text: not text.endswith(b"\n"), id="no last line feed"
        ),
        pytest.param(
            lambda text: text.replace(b'"Python 3"', b'"Penguins"').replace(b'"python3"', b'"penguins"'),
            lambda text: json.loads(text)["metadata"]["kernelspec"]["name"] == "penguins",
            id="a renamed kernel",
        ),
    ],
)
def test_how_a_side_is_written_and_its_kernel_are_kept(
    of: Callable[[bytes], bytes], kept: Callable[[bytes], bool]
) -> None:
    merged = notebook_merge.merge(notebook(BASE), of(changed(0, "zero")), changed(4, "four"))
    cells = sources(merged)
    assert (cells["c0"], cells["c4"]) == (["zero"], ["four"])
    assert kept(merged)
    assert merged.count(b"\n") > 50  # it is not one line


def test_two_names_for_the_kernel_are_a_conflict() -> None:
    ours, theirs = (notebook(BASE).replace(b'"python3"', name) for name in (b'"ours"', b'"theirs"'))
    with pytest.raises(Unmergeable):
        notebook_merge.merge(notebook(BASE), ours, theirs)


@pytest.mark.long
def test_fifty_megabytes_of_outputs_are_merged() -> None:
    large = deepcopy(BASE)
    large[4]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["x" * (50 << 20)]}]
    ours, theirs = deepcopy(large), deepcopy(large)
    ours[0]["source"], theirs[2]["source"] = ["zero"], ["two"]
    merged = sources(notebook_merge.merge(*map(notebook, (large, ours, theirs))))
    assert (merged["c0"], merged["c2"]) == (["zero"], ["two"])


@pytest.mark.long
def test_a_merge_that_takes_too_much_memory_is_one_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*versions: bytes) -> bytes:
        return merge(*versions)[len(bytearray(1 << 30)) :]

    merge = notebook_merge.merge
    monkeypatch.setattr(notebook_merge, "merge", greedy)
    monkeypatch.setattr(notebook_merge, "MAX_MEMORY", 1 << 29)
    files = [tmp_path / name for name in ("base", "ours", "theirs")]
    versions = (notebook(BASE), changed(1, "one = 1"), changed(3, "three = 3"))
    for file, text in zip(files, versions, strict=True):
        file.write_bytes(text)
    assert notebook_merge.main(*map(str, files), "7") == 1
    assert b"<<<<<<< ours" in files[1].read_bytes()


@pytest.mark.long
def test_attributes_and_settings_of_a_worker_choose_no_program(root: Path, place: Path, repo: Repository) -> None:
    _, right = stage(root, notebook(BASE), changed(1, "one = 1", 7), changed(3, "three = 3", 8))
    add(repo, place / "w", "work")
    git(place / "w", "config", "merge.other.driver", f"touch {root}/ran")
    commit(place / "w", {".gitattributes": "*.ipynb merge=other\n"})
    repo.integrate("work", "main", "merge", ANNA)
    assert repo.preview_merge("main", right).conflicts == ("a.ipynb",)
    assert not (root / "ran").exists()


@pytest.mark.long
def test_a_rule_of_the_person_takes_precedence(root: Path, repo: Repository, tmp_path: Path) -> None:
    left, right = stage(root, notebook(BASE), changed(1, "one = 1", 7), changed(3, "three = 3", 8))
    (tmp_path / ".config" / "git").mkdir(parents=True)
    (tmp_path / ".config" / "git" / "attributes").write_text("*.ipynb -merge\n")
    assert repo.preview_merge(left, right).conflicts == ("a.ipynb",)


def test_a_notebook_is_compared_cell_by_cell_with_the_lines_of_the_file(root: Path, repo: Repository) -> None:
    cells = deepcopy(BASE)
    cells[1]["source"][1:] = ["more\n", "print(x1)\n"]
    cells[3]["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": {"image/png": "aaaa"}}]
    cells[4:] = [cell("new", "new = 1")]
    _, right = stage(root, notebook(BASE), notebook(BASE[:1]), notebook(cells))
    (diff,) = repo.diff("main", right, max_bytes=10_000)
    assert diff.patch is not None
    kept, removed, added = ("print(x1)\\n", "x4 = 4\\n", "new = 1\\n")
    old, new = notebook(BASE).decode().splitlines(), git(root, "show", "theirs:a.ipynb").splitlines()
    before, after = (1 + next(n for n, line in enumerate(text) if kept in line) for text in (old, new))
    gone, come = (1 + next(n for n, line in enumerate(t) if o in line) for t, o in ((old, removed), (new, added)))
    assert diff.patch.splitlines()[1:6] == [
        f"@@ -{before - 1},2 +{after - 2},3 @@ cell 2, code",
        " x1 = 1",
        "+more",
        " print(x1)",
        next(line for line in diff.patch.splitlines() if line.endswith("@@ cell 4, code: outputs (image/png) changed")),
    ]
    assert f"@@ -{gone},2 +" in diff.patch
    assert diff.patch.endswith(f"+{come},1 @@ cell 5, code: added\n+new = 1\n")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", "[" * 100_000, '{"nbformat": 4', '{"nbformat": 3, "cells": []}'),
        *('{"nbformat": 4, "cells": [1]}', '{"nbformat": 4, "cells": [{"source": ["a"], "id": [1]}]}'),
        '{"nbformat": 4, "cells": [{"source": ["a"], "id": "c0", "cell_type": "code", "outputs": [{"data": 4}]}]}',
    ],
)
def test_what_is_no_notebook_is_not_compared_cell_by_cell(text: str) -> None:
    assert notebook_diff.as_patch(notebook(BASE).decode(), text) is None
