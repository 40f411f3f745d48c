"""The commands about personas."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Type, data


def test_personas_are_listed_shown_and_saved(run: Type, tmp_path: Path) -> None:
    (tmp_path / "ornithologist.md").write_text("---\nname: Ornithologist\n---\nKnow your birds.\n")
    assert "implementer" in run("personas").out
    out = run("personas", "save", str(tmp_path / "ornithologist.md")).out
    assert out == "Saved persona ornithologist; its agents are workers.\n"
    assert "Know your birds." in run("personas", "show", "ornithologist").out
    run("personas", "save", str(tmp_path / "ornithologist.md"), "--id", "tester")
    assert [one["source"] for one in data(run("--json", "personas", "versions", "tester"))] == ["project", "built-in"]
