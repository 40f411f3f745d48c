"""The commands about contexts."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Type, data


def test_contexts_are_written_listed_found_shown_edited_deleted_and_restored(run: Type, tmp_path: Path) -> None:
    run("projects", "add", "Lab")
    run("sessions", "add", "Lab", "Day 1")
    text = tmp_path / "north.txt"
    text.write_text("Longer in the north.")
    context_id = data(run("--json", "contexts", "add", "Day 1", "Bills", "--file", str(text)))["context_id"]
    assert [one["id"] for one in data(run("--json", "contexts", "search", "north"))] == [context_id]
    assert run("contexts", "search", "south").out == "No context matches.\n"
    assert run("contexts", "show", context_id).out == "Bills\n\nLonger in the north.\n"
    ran = run("contexts", "edit", context_id, "--content", "Shorter in the east.", "--metadata", '{"seen": 7}')
    assert ran.out == "Changed the content and metadata of Bills.\n"
    found = data(run("--json", "contexts", "show", context_id))
    assert (found["title"], found["content"], found["metadata"]) == ("Bills", "Shorter in the east.", {"seen": 7})
    text.write_bytes(b"\xff")
    assert run("contexts", "edit", context_id, "--file", str(text)).err.startswith("NOT_TEXT: ")
    assert run("contexts", "edit", context_id, "--file", str(text), "--content", "x").status == 2
    run("contexts", "delete", context_id)
    assert data(run("--json", "contexts")) == []
    run("contexts", "restore", context_id)
    assert "Bills" in run("contexts").out
