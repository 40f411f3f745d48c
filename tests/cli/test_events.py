"""The command that lists events."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Type, data


def test_the_newest_events_are_listed_the_newest_last(run: Type, tmp_path: Path) -> None:
    tasks = "".join(f"  - {{name: t{number}, title: T, persona: tester}}\n" for number in range(60))
    (tmp_path / "plan.yaml").write_text(f"plan: p\ntasks:\n{tasks}")
    run("plan", str(tmp_path / "plan.yaml"))
    run("projects", "add", "Lab")
    found = data(run("--json", "events"))
    ids = [event["id"] for event in found]
    assert ids == list(range(ids[0], ids[0] + 50))
    assert run("events").out.splitlines()[-1] == f"There are older ones: --before {ids[0]}"
    older = [event["id"] for event in data(run("--json", "events", "--before", str(ids[0]), "--limit", "500"))]
    assert older == list(range(1, ids[0]))
    assert [event["id"] for event in data(run("--json", "events", "--after", str(ids[-3])))] == ids[-2:]
    newest = data(run("--json", "events", "--limit", "1"))[0]
    assert (newest["id"], newest["kind"]) == (ids[-1], "project.created")
    assert [event["id"] for event in data(run("--json", "events", "--about", newest["subject"]))] == [ids[-1]]
    assert "older" not in run("events", "--limit", "500").out
    assert run("events", "--kinds", "run.*").out == "There are no such events yet.\n"
