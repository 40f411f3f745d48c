"""The content of an artifact, as a cell shows it: always inert."""

from __future__ import annotations

import base64
from typing import Any

from kernel_ext.objects.artifacts import ArtifactView

FOUND = {
    **{"name": "a", "path": "out/a", "media_type": "text/plain", "bytes": 5, "sha256": "0" * 64},
    **{"added_at": "2026-01-01T00:00:00Z", "form": "text", "picture_type": None, "data": None, "text": None},
    **{"columns": [], "rows": [], "cut": False, "changed": False},
}


def shown(**more: Any) -> dict[str, Any]:
    """The data that a cell shows."""
    return ArtifactView(FOUND | more)._repr_mimebundle_()


def test_a_picture_is_shown_and_can_be_taken_out() -> None:
    picture = {"form": "picture", "picture_type": "image/png", "data": base64.b64encode(b"png").decode()}
    assert 'src="data:image/png;base64,cG5n"' in shown(**picture)["text/html"]
    assert ArtifactView(FOUND | picture).picture == b"png"


def test_a_table_is_shown_as_a_table_and_converted_to_a_frame() -> None:
    table = {"form": "table", "columns": ["n", "<b>"], "rows": [["1", "<script>"]]}
    assert "<script>" not in shown(**table)["text/html"]
    assert ArtifactView(FOUND | table).frame()["n"].tolist() == ["1"]


def test_no_text_is_ever_markup() -> None:
    for form in ("text", "markdown", "json"):
        page = shown(form=form, text="<script>alert(1)</script>\x1b[31m")["text/html"]
        assert "<script>" not in page
        assert "\x1b" not in page


def test_an_artifact_says_where_the_rest_is_and_whether_it_changed() -> None:
    assert "This is its beginning." in repr(ArtifactView(FOUND | {"text": "a", "cut": True}))
    assert "has changed since" in repr(ArtifactView(FOUND | {"text": "a", "changed": True}))
    assert "out/a, 5 bytes. It cannot be shown here." in repr(ArtifactView(FOUND | {"form": "file"}))
