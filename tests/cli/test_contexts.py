"""The commands about contexts."""

from __future__ import annotations

from tests.cli.conftest import Type, data


def test_contexts_are_listed_found_shown_deleted_and_restored(run: Type) -> None:
    run("projects", "add", "Lab")
    run("sessions", "add", "Lab", "Day 1")
    content = '{"title": "Bills", "content": "Longer in the north."}'
    made = data(run("--json", "call", "write", "session_id=Day 1", f"content={content}"))["context_id"]
    assert [one["id"] for one in data(run("--json", "contexts", "search", "north"))] == [made]
    assert run("contexts", "search", "south").out == "No context matches.\n"
    assert run("contexts", "show", made).out == "Bills\n\nLonger in the north.\n"
    run("contexts", "delete", made)
    assert data(run("--json", "contexts")) == []
    run("contexts", "restore", made)
    assert "Bills" in run("contexts").out
