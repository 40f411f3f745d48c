"""Merges notebooks cell by cell. Git runs this file as its merge driver for them; see `notebooks`.

It reads untrusted JSON and runs nothing of it, in a process with limits of time and memory. What it cannot merge
without losing something is merged as text, as git would. It imports nothing of Workbench, so that it starts quickly.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_BYTES = 200 << 20
"""How large the three versions of a notebook may be together. Larger ones are merged as text."""
MAX_SECONDS = 30
MAX_MEMORY = 4 << 30
"""How long merging one notebook may take, and its memory in bytes; then it is merged as text."""
STALE = "stale_outputs"
"""True in a cell's metadata, below ``workbench``: its outputs are of one side, whose code was not that of the merge."""

Json = dict[str, Any]

_RUN = ("outputs", "execution_count")
_RUN_METADATA = ("execution", "papermill", "collapsed", "scrolled", "autoscroll")
_OF_THE_KERNEL = ("language_info", "papermill")
_OWN = "workbench"
_INDENT = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*\{\s*\n( *)")


class Unmergeable(Exception):
    """Not three versions of a notebook that can be merged cell by cell."""


@dataclass(frozen=True, slots=True)
class _Version:
    """One version of a notebook: its text without what running it wrote, and that of each cell."""

    document: Json
    kernel: Json
    runs: Sequence[Json | None]

    @property
    def cells(self) -> list[Json]:
        cells: list[Json] = self.document["cells"]
        return cells

    @property
    def has_ids(self) -> bool:
        return bool(self.document["nbformat_minor"] >= 5)


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """The merge of three versions of a notebook in format 4: with the changes of both sides, valid.

    Outputs and execution counts are taken from the side that changed them, from ours if both did. Cells that both
    sides insert at one place are both kept, ours first.

    Raises:
        Unmergeable: one is no valid notebook, or the changes conflict. Also anything that nbdime raises.
    """
    import nbformat

    versions = [_read(text) for text in (base, ours, theirs)]
    if len({version.has_ids for version in versions}) > 1:
        raise Unmergeable("Only some versions have ids of cells.")
    merged = _merge_documents(*(version.document for version in versions))
    _add_runs(merged["cells"], *versions)
    merged["metadata"] |= _choose(*(version.kernel for version in versions))[0] or {}
    nbformat.validate(merged)
    return _write(merged, ours)


def _read(text: bytes) -> _Version:
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("nbformat") != 4:
        raise Unmergeable("This is not a notebook of format 4.")
    _validate(document)
    runs = [_take_run(cell) for cell in document["cells"]]
    kernel = {name: document["metadata"].pop(name) for name in _OF_THE_KERNEL if name in document["metadata"]}
    return _Version(document, kernel, runs)


def _validate(document: Json) -> None:
    """Refuse what is no valid notebook. Outputs, which may be large, are checked with the merged notebook."""
    import nbformat

    cells = document.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise Unmergeable("Its cells are not a list of objects.")
    if document.get("nbformat_minor", 0) >= 5 and len({cell.get("id") for cell in cells} - {None}) < len(cells):
        raise Unmergeable("A cell has no id of its own.")
    nbformat.validate(document | {"cells": [cell | {"outputs": []} if "outputs" in cell else cell for cell in cells]})


def _take_run(cell: Json) -> Json | None:
    """Remove from a cell what running it wrote, and return that; None if it is no code."""
    if not isinstance(cell["source"], str):
        cell["source"] = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return None
    run = {name: cell[name] for name in _RUN}
    run["metadata"] = {name: cell["metadata"].pop(name) for name in _RUN_METADATA if name in cell["metadata"]}
    run[STALE] = _take_mark(cell["metadata"])
    cell.update(outputs=[], execution_count=None)
    return run


def _take_mark(metadata: Json) -> bool:
    own = metadata.get(_OWN)
    mark = bool(own.pop(STALE, False)) if isinstance(own, dict) else False
    if own == {}:
        del metadata[_OWN]
    return mark


def _merge_documents(base: Json, ours: Json, theirs: Json) -> Json:
    """Merge with nbdime, and check the result.

    At one place, nbdime puts what the first side did before what the second did: a cell of the second may then come
    after one that it was put before. Merged the other way round, it does not.
    """
    for first, second in ((ours, theirs), (theirs, ours)):
        merged = _merge_with_nbdime(base, first, second)
        cells = [document["cells"] for document in (base, ours, theirs, merged)]
        (_check_by_id if ours["nbformat_minor"] >= 5 else _check_by_source)(*cells)
        if _has_order(*([_name(cell) for cell in version] for version in cells)):
            return merged
    raise Unmergeable("Both sides changed the order of cells.")


def _merge_with_nbdime(base: Json, ours: Json, theirs: Json) -> Json:
    import nbformat
    from nbdime.diffing.notebooks import diff_notebooks
    from nbdime.merging.decisions import apply_decisions
    from nbdime.merging.generic import decide_merge_with_diff
    from nbdime.merging.notebooks import notebook_merge_strategies

    base, ours, theirs = map(nbformat.from_dict, (base, ours, theirs))
    strategies = notebook_merge_strategies(None)
    strategies["/cells"] = "union"  # keep both insertions; that more is joined than these, the checks find
    decisions = decide_merge_with_diff(
        base, ours, theirs, diff_notebooks(base, ours), diff_notebooks(base, theirs), strategies
    )
    if any(decision.conflict for decision in decisions):
        raise Unmergeable("Both sides changed the same.")
    merged: Json = json.loads(json.dumps(apply_decisions(base, decisions)))
    return merged


def _check_by_id(base: list[Json], ours: list[Json], theirs: list[Json], merged: list[Json]) -> None:
    """Refuse a merge that lost or invented a change of a cell."""
    ids = [cell["id"] for cell in merged]
    sides = [{cell["id"]: cell for cell in cells} for cells in (base, ours, theirs)]
    by_id = {cell["id"]: cell for cell in merged}
    if len(by_id) < len(ids):
        raise Unmergeable("A cell was moved twice.")
    for name in set().union(by_id, *sides):
        _check_cell([side.get(name) for side in sides], by_id.get(name))


def _has_order(base: list[str], ours: list[str], theirs: list[str], merged: list[str]) -> bool:
    """Whether merged cells are in the order of each side, or, if one side moved some, in that of this side."""
    moved = [_common(base, side) != _common(side, base) for side in (ours, theirs)]
    kept = [_common(merged, side) == _common(side, merged) for side in (ours, theirs)]
    return not all(moved) and all(is_kept or moved[1 - side] for side, is_kept in enumerate(kept))


def _name(cell: Json) -> str:
    """The id of a cell; without one, its source."""
    name: str = cell["id"] if "id" in cell else cell["source"]
    return name


def _common(order: Sequence[str], other: Sequence[str]) -> list[str]:
    """The names of one order that another has, too."""
    known = set(other)
    return [name for name in order if name in known]


def _check_cell(versions: Sequence[Json | None], merged: Json | None) -> None:
    base, ours, theirs = versions
    if ours == theirs or theirs == base:
        expected = ours
    elif ours == base:
        expected = theirs
    elif base is None or ours is None or theirs is None:
        raise Unmergeable("One side changed a cell that the other removed or made.")
    else:
        if merged is None or not all(
            _has_changes(base["source"], side["source"], merged["source"]) for side in (ours, theirs)
        ):
            raise Unmergeable("A change of a cell was lost.")
        return
    if merged != expected:
        raise Unmergeable("A cell was not merged as it was changed.")


def _has_changes(base: str, side: str, merged: str) -> bool:
    """Whether the merged text has all lines that a side added."""
    before, after, lines = (Counter(text.splitlines()) for text in (base, side, merged))
    return not after - before - lines


def _check_by_source(base: list[Json], ours: list[Json], theirs: list[Json], merged: list[Json]) -> None:
    """Refuse a merge of cells without ids that lacks what a side added or both kept, or has more."""
    before, left, right, after = (
        Counter((cell["cell_type"], cell["source"]) for cell in cells) for cells in (base, ours, theirs, merged)
    )
    expected = (left - before) | (right - before) | (before & left & right)
    if expected - after or after - (left | right):
        raise Unmergeable("A cell was not merged as it was changed.")


def _add_runs(merged: list[Json], base: _Version, ours: _Version, theirs: _Version) -> None:
    """Give the merged cells outputs, and mark those that are not of the merged code."""
    versions = [_Runs(version) for version in (base, ours, theirs)]
    code: tuple[str, ...] = ()
    for cell in merged:
        if cell["cell_type"] != "code":
            continue
        code = (*code, cell["source"])
        found = [runs.take(cell) for runs in versions]
        before, left, right = (run for run, _ in found)
        run, sides = _choose(before, left, right)
        if run is None:
            continue
        is_new = before is not None and run["outputs"] != before["outputs"]
        is_of_this = any(found[side][1] == code for side in sides)
        cell.update({name: run[name] for name in _RUN})
        cell["metadata"] |= run["metadata"]
        if run["outputs"] and (not is_of_this or (run[STALE] and not is_new)):
            cell["metadata"].setdefault(_OWN, {})[STALE] = True


class _Runs:
    """The runs of a version's cells, each with the code that came before it, by id or else by source."""

    def __init__(self, version: _Version) -> None:
        self._by_name: dict[Any, list[tuple[Json, tuple[str, ...]]]] = {}
        code: tuple[str, ...] = ()
        for cell, run in zip(version.cells, version.runs, strict=True):
            if run is not None:
                code = (*code, cell["source"])
                self._by_name.setdefault(_name(cell), []).append((run, code))

    def take(self, cell: Json) -> tuple[Json | None, tuple[str, ...]]:
        """The next run of such a cell."""
        left = self._by_name.get(_name(cell))
        return left.pop(0) if left else (None, ())


def _choose(base: Json | None, ours: Json | None, theirs: Json | None) -> tuple[Json | None, tuple[int, ...]]:
    """What the side has that changed it, ours if both did; and which sides (1 and 2) have it."""
    if ours == theirs:
        return ours, (1, 2)
    is_theirs = ours is None or (ours == base and theirs is not None)
    return (theirs, (2,)) if is_theirs else (ours, (1,))


def _write(notebook: Json, like: bytes) -> bytes:
    """A notebook as programs of Jupyter write it, with the indentation of one version."""
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)
    indent = _INDENT.match(like)
    text = json.dumps(notebook, ensure_ascii=False, indent=len(indent[1]) if indent else None, sort_keys=True)
    return text.encode() + (b"\n" if like.endswith(b"\n") else b"")


def main(base: str, ours: str, theirs: str, marker_size: str) -> int:
    """Merge three files into `ours`, as git asks a merge driver to; 1 if they conflict.

    Falls back to a merge of their text, which leaves conflict markers of that size.
    """
    result = Path(f"{ours}.merged")
    try:
        if _merge_apart([Path(name) for name in (base, ours, theirs)], result):
            result.replace(ours)
            return 0
    finally:
        result.unlink(missing_ok=True)
    return _merge_text(base, ours, theirs, marker_size)


def _merge_apart(files: Sequence[Path], into: Path) -> bool:
    """Merge in a process of its own, which its limits may end."""
    if not files[0].stat().st_size or sum(file.stat().st_size for file in files) > MAX_BYTES:
        return False
    child = os.fork()
    if not child:
        status = 1
        try:
            _limit()
            into.write_bytes(merge(*(file.read_bytes() for file in files)))
            status = 0
        except Exception:
            pass
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def _limit() -> None:
    """Limit the time and memory of this process, and say nothing."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    signal.alarm(2 * MAX_SECONDS)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


def _merge_text(base: str, ours: str, theirs: str, marker_size: str) -> int:
    """Merge as git merges text; but a result that is no JSON any more, of versions that are, is a conflict."""
    before = [Path(name).read_bytes() for name in (ours, theirs)]
    labels = [part for label in ("ours", "base", "theirs") for part in ("-L", label)]
    command = ["git", "merge-file", "--quiet", f"--marker-size={marker_size}", *labels, ours, base, theirs]
    if code := subprocess.run(command, check=False).returncode:
        return 1 if code > 0 else code
    if all(map(_is_json, before)) and not _is_json(Path(ours).read_bytes()):
        _write_conflict(Path(ours), before, int(marker_size))
        return 1
    return 0


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _write_conflict(file: Path, versions: Sequence[bytes], size: int) -> None:
    """Write both versions as a whole between conflict markers."""
    lines = zip((b"<", b"="), (b" ours", b""), versions, strict=True)
    parts = [mark * size + label + b"\n" + text.removesuffix(b"\n") + b"\n" for mark, label, text in lines]
    file.write_bytes(b"".join(parts) + b">" * size + b" theirs\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
