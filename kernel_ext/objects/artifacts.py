"""The artifacts of runs and tasks in a cell: a picture, the first rows of a table, or text."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from kernel_ext.definition_sections import Missing, SectionCaller
from kernel_ext.libraries import imported
from workbench.errors import WorkbenchError
from workbench.present.inert import as_html, inert
from workbench.present.tables import Table, TablePage
from workbench.rules.tasks.artifacts import kind

if TYPE_CHECKING:
    import pandas

CHANGED = "The file has changed since the run recorded it."


class ArtifactView:
    """What an artifact contains. A cell shows it.

    `data` has all that the operation `get_run_artifact` or `get_task_artifact` returned.
    """

    def __init__(self, artifact: Mapping[str, Any]) -> None:
        self.data = dict(artifact)

    @property
    def picture(self) -> bytes | None:
        """The picture; None if it is none."""
        return base64.b64decode(self.data["data"]) if self.data["form"] == "picture" else None

    @property
    def text(self) -> str | None:
        """The text, or its beginning (`data["cut"]`); None for pictures, tables and other files."""
        text: str | None = self.data["text"]
        return text

    def frame(self) -> pandas.DataFrame:
        """The first rows of a table, as texts; empty if it is none."""
        imported("pandas")
        import pandas

        return pandas.DataFrame(self.data["rows"], columns=self.data["columns"])

    def _note(self) -> str:
        """Its path, its size, and what the reader must know besides."""
        notes = [CHANGED] if self.data.get("changed") else []
        if self.data["form"] == "file":
            notes.append("It cannot be shown here.")
        elif self.data["cut"]:
            notes.append("This is its beginning.")
        return " ".join([f"{self.data['path']}, {self.data['bytes']:,} bytes.", *notes])

    def __repr__(self) -> str:
        if self.data["form"] == "table":
            return self._table().text()
        return "\n\n".join(filter(None, [inert(self.text or ""), inert(self._note())]))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        form, note = self.data["form"], f"<p>{as_html(self._note())}</p>"
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if form == "picture":
            source = f"data:{self.data['picture_type']};base64,{self.data['data']}"
            bundle["text/html"] = f'<img alt="{as_html(self.data["name"])}" src="{source}">{note}'
        elif form == "table":
            bundle["text/html"] = self._table().html()
        elif self.text is not None:  # Markdown too: a cell would run the HTML in it
            bundle["text/html"] = f"<pre>{as_html(self.text)}</pre>{note}"
        else:
            bundle["text/html"] = note
        return bundle

    def _table(self) -> Table | TablePage:
        return Table(self.data["columns"], self.data["rows"], "It has no rows.", data=self.data, note=self._note())


class TaskArtifact:
    """Something that a task made: a cell shows what the file contains, or the name of the commit, or the address."""

    def __init__(self, notebook: SectionCaller, task_id: int, name: str) -> None:
        self._notebook = notebook
        self.task_id = task_id
        self.name = name
        self.kind = kind(name)
        """``file``, ``commit`` or ``address``."""

    def open(self) -> ArtifactView:
        """What the file contains, read at the commit that completed the task, in its worktree, or in the project.

        Raises:
            NotFound: ``ARTIFACT_NOT_FOUND``: it is no file. Unavailable: ``ARTIFACT_UNREADABLE``.
        """
        return ArtifactView(self._notebook.call("get_task_artifact", task_id=self.task_id, name=self.name))

    def __repr__(self) -> str:
        return repr(self._render())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        view = self._render()
        return view._repr_mimebundle_() if isinstance(view, ArtifactView) else {"text/plain": repr(view)}

    def _render(self) -> ArtifactView | Table:
        if self.kind != "file":
            return Table([], [], "", lead=self.name)
        try:
            return self.open()
        except WorkbenchError as error:
            return Table([], [], "", lead=f"{error.code}: {error.message}")


class TaskArtifacts(Sequence[TaskArtifact]):
    """What a task made, by position or by name."""

    def __init__(self, notebook: SectionCaller, task_id: int, names: Sequence[str]) -> None:
        self._artifacts = [TaskArtifact(notebook, task_id, name) for name in names]

    @overload
    def __getitem__(self, at: int | str) -> TaskArtifact: ...
    @overload
    def __getitem__(self, at: slice) -> list[TaskArtifact]: ...
    def __getitem__(self, at: int | str | slice) -> TaskArtifact | list[TaskArtifact]:
        """One of them.

        Raises:
            Missing: ``ARTIFACT_NOT_FOUND``: none has this name.
        """
        if not isinstance(at, str):
            return self._artifacts[at]
        for artifact in self._artifacts:
            if artifact.name == at:
                return artifact
        raise Missing("ARTIFACT_NOT_FOUND", f"The task has no artifact {at!r}.")

    def __len__(self) -> int:
        return len(self._artifacts)

    def __repr__(self) -> str:
        return repr(self._table())

    def _repr_html_(self) -> str:
        return self._table().html()

    def _ipython_key_completions_(self) -> list[str]:
        return [artifact.name for artifact in self._artifacts]

    def _table(self) -> Table:
        note = "[name] or [number] opens one." if self._artifacts else ""
        rows = [[artifact.name, artifact.kind] for artifact in self._artifacts]
        return Table(["artifact", "kind"], rows, "It made none.", note=note)
