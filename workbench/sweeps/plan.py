"""The plan of a sweep, checked as a whole before anything is started or recorded."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import BadInput, Unavailable, unreadable_file
from workbench.rules.sweeps import grid, notebook
from workbench.rules.sweeps.grid import PlannedRun
from workbench.rules.sweeps.specification import Specification
from workbench.state.home import NOWHERE, home
from workbench.state.settings import Settings
from workbench.sweeps.job import SweepCall

_LARGEST_NOTEBOOK = 100_000_000


@dataclass(frozen=True)
class SweepPlan:
    """A sweep that can be run.

    Args:
        path: of the notebook.
        text: the notebook.
        content: the hash of the notebook's content.
        begun: that of the notebook that the sweep began with: its runs are known by it.
    """

    specification: Specification
    path: Path
    text: str
    content: str
    runs: Sequence[PlannedRun]
    begun: str

    @property
    def digest(self) -> str:
        """The digest of the grid: equal for sweeps with the same runs."""
        return grid.digest(self.specification, self.begun)

    def shown_path(self, project: Path) -> str:
        """The notebook's path, relative to the project if it is inside."""
        return self.path.relative_to(project).as_posix() if self.path.is_relative_to(project) else str(self.path)

    def as_data(self, project: Path) -> dict[str, Any]:
        """The specification as it is recorded."""
        values: dict[str, Any] = {"notebook": self.shown_path(project), "repeat": self.specification.repeat}
        parts = {"parameters": self.specification.parameters, "over": self.specification.over}
        values |= {name: {key: list(choices) for key, choices in part.items()} for name, part in parts.items()}
        return values | {"runs": len(self.runs), "digest": self.digest}


def make(
    specification: Specification,
    base: Path,
    settings: Settings,
    *,
    begun: str | None = None,
    kernel: str | None = None,
) -> SweepPlan:
    """Read the notebook, check the values against its parameters, and make the grid.

    Args:
        base: the directory that the notebook's path is relative to.
        begun: the hash of the notebook that the sweep began with; None: it is this one.
        kernel: None: the one that the notebook names.

    Raises:
        BadInput: ``FILE_UNREADABLE``, ``BAD_NOTEBOOK``, ``KERNEL_NOT_FOUND``, ``UNKNOWN_PARAMETER``, ``BAD_PARAMETER``,
            ``SWEEP_TOO_LARGE``. Unavailable: ``NO_HOME``.
    """
    import nbformat

    _require_home()
    path = (base / specification.notebook).resolve()
    document = _read(path)
    if kernel is not None:
        document.metadata.kernelspec = {"name": kernel, "display_name": kernel}
    _add_language(document, require_kernel(document, path.name))
    text = nbformat.writes(document)
    parameters = _read_parameters(document, path)
    values = {**specification.parameters, **specification.over}
    if values:
        notebook.require_one_place(document, path.name)
    notebook.check(parameters, values, path.name)
    content, recorded = notebook.content_hash(document), specification.recorded
    begun = begun or content
    runs = grid.grid(recorded, begun, settings.max_sweep_runs)
    return SweepPlan(recorded, path, text, content, runs, begun)


def require_over(specification: Specification, call: SweepCall) -> None:
    """Refuse personas and definitions that the project does not have.

    Raises:
        NotFound: see the operations `get_persona` and `agent_get_info`.
    """
    for persona in specification.over.get("persona", ()):
        call("get_persona", persona_id=persona)
    for definition in specification.over.get("definition", ()):
        call("agent_get_info", agentTarget=definition)


def _read(path: Path) -> Any:
    """A notebook as nbformat reads it. Cells without an id of their own get one, as older programs write none."""
    import nbformat
    from nbformat.reader import reads
    from nbformat.validator import normalize

    try:
        if path.stat().st_size > _LARGEST_NOTEBOOK:
            raise _bad_notebook(path, "it is too large")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable_file(path, error) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of each id that it adds
            _, document = normalize(nbformat.convert(reads(text), 4))
        nbformat.validate(document)
    except Exception as error:  # nbformat raises anything
        raise _bad_notebook(path, " ".join(str(error).split())[:200]) from None
    return document


def _read_parameters(document: Mapping[str, Any], path: Path) -> Mapping[str, notebook.Parameter] | None:
    if notebook.is_python(document):
        return notebook.declared(document)
    from papermill import inspect_notebook

    return notebook.of_papermill(inspect_notebook(str(path)))


def require_kernel(document: Mapping[str, Any], path: str) -> str:
    """Check that the kernel of a notebook is installed here; its language.

    Raises:
        BadInput: ``BAD_NOTEBOOK``, ``KERNEL_NOT_FOUND``. Unavailable: ``NO_HOME``.
    """
    _require_home()
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    name = (document.get("metadata", {}).get("kernelspec") or {}).get("name")
    if not name:
        raise _bad_notebook(path, "it names no kernel. Add --kernel python3, or choose a kernel in Jupyter")
    try:
        return str(KernelSpecManager().get_kernel_spec(name).language)
    except NoSuchKernel:
        raise BadInput(
            "KERNEL_NOT_FOUND",
            f"{path} needs the kernel {name!r}, which is not here. Add --kernel python3 to use that one; "
            "`jupyter kernelspec list` lists those here.",
        ) from None


def _require_home() -> None:
    if home() == NOWHERE:
        raise Unavailable(
            "NO_HOME",
            "Jupyter looks for kernels in the home directory, and the user that you run as has none. Set HOME to a "
            "directory of yours.",
        )


def _add_language(document: Any, language: str) -> None:
    """Note the language in a notebook that does not name it, for papermill would fail in each run."""
    if not notebook.language(document):
        document.metadata.kernelspec["language"] = language


def _bad_notebook(path: Path | str, why: str) -> BadInput:
    return BadInput("BAD_NOTEBOOK", f"{path} is not a notebook that can be run: {why}.")
