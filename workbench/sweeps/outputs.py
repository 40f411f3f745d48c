"""Limits the output of a run, and saves executed notebooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workbench.rules.secrets.mask import Mask
from workbench.rules.sweeps.notebook import INJECTED
from workbench.system import atomic_file

MEDIA = ("image/", "audio/", "video/", "application/pdf")
"""Types of data that is no text, but for XML."""

EXPECTED = "raises-exception"


class OutputLimit:
    """Counts the output of a run. When it exceeds the limit, a notice is added, and the rest is left out.

    Args:
        limit: bytes of all outputs of a run, as JSON.
    """

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._limit = limit
        self._is_told = False

    @property
    def exceeded(self) -> bool:
        """Whether something was left out."""
        return self._is_told

    def cut(self, kind: str, content: dict[str, Any]) -> dict[str, Any] | None:
        """The part of an output's content that fits; None if nothing does.

        A stream is shortened; another output is kept whole or not at all. Errors are always kept.

        Args:
            kind: the type of the kernel's message.
        """
        if kind == "stream":
            text = content["text"]
            prefix = text if self._fits(len(text)) else text[: self._take(len(text))]
            if len(prefix) == len(text):
                return content
            notice = self._notice()
            return {**content, "text": prefix + notice} if prefix or notice else None
        if kind not in ("display_data", "execute_result"):
            return content
        size = _size(content.get("data"))
        if self._fits(size):
            return content
        self._left = 0
        notice = self._notice()
        return {**content, "data": {"text/plain": notice.strip()}, "metadata": {}} if notice else None

    def _fits(self, size: int) -> bool:
        if size > self._left:
            return False
        self._left -= size
        return True

    def _take(self, size: int) -> int:
        amount, self._left = min(size, self._left), 0
        return amount

    def _notice(self) -> str:
        if self._is_told:
            return ""
        self._is_told = True
        limit = f"{self._limit:,} bytes (max_sweep_output_bytes)"
        return f"\n… The outputs of this run exceed {limit}; the rest is left out.\n"


def _size(data: Any) -> int:
    """About how many bytes a value has as JSON."""
    if isinstance(data, str):
        return len(data)
    if isinstance(data, dict):
        return sum(len(str(key)) + _size(value) for key, value in data.items())
    return len(json.dumps(data, default=str))


def save(document: Any, path: Path) -> None:
    """Save a notebook atomically.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    import nbformat

    atomic_file.replace(path, nbformat.writes(document))


def without_secrets(document: Any, mask: Mask) -> None:
    """Mask secrets in the outputs of an executed notebook, and in the values that it was given.

    The sources of its cells stay: they are its author's.
    """
    if "papermill" in document.metadata:
        document.metadata["papermill"] = mask.data(document.metadata["papermill"])
    for cell in document.cells:
        if INJECTED in cell.metadata.get("tags", ()):
            cell.source = mask.text(cell.source)
        for output in cell.get("outputs", ()):
            texts = {name: output[name] for name in ("text", "ename", "evalue", "traceback") if name in output}
            output.update(mask.data(texts))
            for kind, data in output.get("data", {}).items():
                if not kind.startswith(MEDIA) or kind.endswith("+xml"):
                    output["data"][kind] = mask.data(data)


def mask_log(path: Path, mask: Mask) -> None:
    """Mask secrets in the log of a kernel's process, unless a later try has removed it.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    try:
        text = path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return
    if (masked := mask.text(text)) != text:
        atomic_file.replace(path, masked)


def add_failure(document: Any, code: str, message: str) -> None:
    """Show why a run was ended below the cell that ran, or else the first one, as the kernel could not."""
    cells = [cell for cell in document.cells if cell.cell_type == "code"]
    running = [cell for cell in cells if _state(cell) in ("running", "failed")]
    for cell in [*running, *cells][:1]:
        add_error(cell, code, message)


def add_error(cell: Any, name: str, message: str) -> None:
    """Show an error below a cell."""
    import nbformat

    cell.outputs.append(nbformat.v4.new_output("error", ename=name, evalue=message, traceback=[f"{name}: {message}"]))


def only_expected_errors(document: Any) -> bool:
    """Whether each cell that shows an error has the tag `raises-exception`, with which Jupyter goes on after it."""
    return all(
        EXPECTED in (cell.metadata.get("tags") or []) and _state(cell) != "failed"
        for cell in document.cells
        if any(output.output_type == "error" for output in cell.get("outputs", ()))
    )


def _state(cell: Any) -> str:
    return str((cell.metadata.get("papermill") or {}).get("status", ""))
