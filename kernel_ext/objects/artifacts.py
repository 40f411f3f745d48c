"""What a file that a run made contains, as a cell shows it: a picture, the first rows of a table, or text."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.inert import as_html, inert
from workbench.tables import Page, Table

if TYPE_CHECKING:
    import pandas

CHANGED = "The file has changed since the run recorded it."


class ArtifactContent:
    """What an artifact contains. A cell shows it; `data` has all that the operation `get_run_artifact` returned."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.data = dict(found)

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
        import pandas

        return pandas.DataFrame(self.data["rows"], columns=self.data["columns"])

    def _note(self) -> str:
        """What is to be said about it besides its content."""
        notes = [CHANGED] if self.data["changed"] else []
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
        shown: dict[str, Any] = {"text/plain": repr(self)}
        if form == "picture":
            source = f"data:{self.data['picture_type']};base64,{self.data['data']}"
            shown["text/html"] = f'<img alt="{as_html(self.data["name"])}" src="{source}">{note}'
        elif form == "table":
            shown["text/html"] = self._table().html()
        elif self.text is not None:  # Markdown too: a cell would run the HTML in it
            shown["text/html"] = f"<pre>{as_html(self.text)}</pre>{note}"
        else:
            shown["text/html"] = note
        return shown

    def _table(self) -> Table | Page:
        return Table(self.data["columns"], self.data["rows"], "It has no rows.", data=self.data, note=self._note())
