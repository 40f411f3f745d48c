"""Differences as text, file by file, without running programs that attributes or settings name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from workbench.git.run import Bound, GitResult, displayed
from workbench.rules import notebook_diff

_HOW = ("-r", "-M", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "--no-color", "--submodule=short")
_TEXT = ("-p", "--full-index", "--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--no-relative")
_LIST = 64 << 20
_NOTEBOOK = 64 << 20
"""How large notebooks are compared cell by cell."""


class AskDiff(Protocol):
    """Runs git and accepts any exit code; its output may be cut."""

    def __call__(self, *arguments: str, bound: Bound) -> GitResult: ...


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The differences of one file.

    `status` is added, modified, deleted, renamed (from `old_path`) or type changed. `added` and `removed` count lines;
    None for a binary file. `patch` is a unified diff; None if the file is binary or the patch too long (`truncated`).
    That of a notebook has the lines of its cells' sources, numbered as in the file; see `notebook_diff`.
    """

    path: str
    old_path: str | None
    status: Literal["A", "M", "D", "R", "T"]
    added: int | None
    removed: int | None
    binary: bool
    patch: str | None
    truncated: bool


def between(ask: AskDiff, old: str, new: str, max_bytes: int, path: str | None = None) -> list[FileDiff]:
    """The differences of two trees or commits; see `Repository.diff`."""
    ends = ("--end-of-options", old, new, *(("--", f":(top,literal){path}") if path is not None else ("--",)))
    result = ask("diff-tree", *_HOW, "--raw", "--numstat", "-z", *ends, bound=Bound(_LIST)).expect((0,))
    files = list(_parse_files(result.fields))
    if not files:
        return []
    output = ask("diff-tree", *_HOW, *_TEXT, *ends, bound=Bound(max(max_bytes, 0)))
    whole = output.out if output.cut else output.expect((0,)).out
    patched = _add_patches(files, _split_patches(whole), output.cut)
    return [_by_cells(ask, old, new, file, max_bytes) if _is_notebook(file) else file for file in patched]


def _is_notebook(file: FileDiff) -> bool:
    return file.path.endswith(".ipynb") and file.status != "T" and not file.binary


def _by_cells(ask: AskDiff, old: str, new: str, file: FileDiff, max_bytes: int) -> FileDiff:
    """The differences of a notebook cell by cell, if it is a valid one and they are not too long."""
    versions = read_versions(ask, old, new, file.path, file.old_path, _NOTEBOOK)
    if versions is None:
        return file
    patch = notebook_diff.as_patch(*versions)
    if not patch or len(patch) > max_bytes:
        return file
    head = f"diff --git a/{file.old_path or file.path} b/{file.path}".replace("\n", "\\n") + "\n"
    return replace(file, patch=head + patch, truncated=False)


def read_versions(
    ask: AskDiff, old: str, new: str, path: str, old_path: str | None, max_bytes: int
) -> tuple[str, str] | None:
    """A notebook in two trees or commits, one without cells where there is none; None if one is larger."""
    texts = []
    for name in (f"{old}:{old_path or path}", f"{new}:{path}"):
        result = ask("cat-file", "blob", name, bound=Bound(max_bytes))
        if result.cut:
            return None
        texts.append(notebook_diff.EMPTY if result.code else result.out.decode("utf-8-sig", "replace"))
    return texts[0], texts[1]


def _parse_files(fields: list[bytes]) -> Iterator[FileDiff]:
    """Parse the output of `--raw --numstat -z`: the status of each file first, then the line counts of each."""
    rows, kinds = iter(fields), []
    counts: list[tuple[bytes, bytes]] = []
    for row in rows:
        if row.startswith(b":"):
            status = row.rpartition(b" ")[2][:1].decode("ascii")
            old = next(rows)
            kinds.append((status, old, next(rows) if status == "R" else old))
        else:
            added, removed, name = row.split(b"\t", 2)
            counts.append((added, removed))
            if not name:
                next(rows), next(rows)
    for (status, old, new), (added, removed) in zip(kinds, counts, strict=True):
        binary = added == b"-"
        yield FileDiff(
            path=displayed(new),
            old_path=displayed(old) if status == "R" else None,
            status=status,  # type: ignore[arg-type]
            added=None if binary else int(added),
            removed=None if binary else int(removed),
            binary=binary,
            patch=None,
            truncated=False,
        )


def _split_patches(text: bytes) -> list[bytes]:
    """Split text into patches: within a patch, no line begins with ``diff --git``."""
    _, *more = (b"\n" + text).split(b"\ndiff --git ")
    return [b"diff --git " + patch for patch in more]


def _add_patches(files: list[FileDiff], patches: list[bytes], cut: bool) -> Iterator[FileDiff]:
    if cut and patches:
        patches.pop()
    rest = iter(patches)
    for file in files:
        parts = [part for _ in range(2 if file.status == "T" else 1) if (part := next(rest, None)) is not None]
        missing = len(parts) < (2 if file.status == "T" else 1)
        if missing:
            yield replace(file, truncated=cut)
        else:
            yield file if file.binary else replace(file, patch=displayed(b"\n".join(parts)).rstrip("\n") + "\n")
