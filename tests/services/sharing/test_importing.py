"""Imports: an export of one project is added to another, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Admit, NewDatabase
from tests.given import project, session, team
from workbench.app import Workbench
from workbench.errors import BadInput, Refused
from workbench.services.sharing import export, import_file
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

ORDER = ["projects", "sessions", "teams", "agents", "contexts"]
LEFT_BEHIND = {"updated_at", "client", "address", "worktree", "registration_status"}
NASTY = ["=1+1", "'=1", "''-1", "'", "-1", "\t=1", 'say "hello", you', "two\r\nlines\r", "é\N{PENGUIN}", " =1", "null"]


@pytest.fixture
async def filled(workbench: Workbench, admit: Admit) -> Workbench:
    """A project with something of everything, and texts that are hard to write down."""
    await project(workbench, description="=SUM(A1)")
    await session(workbench, "one")
    await team(workbench, "red", "one")
    await team(workbench, "nowhere")
    ada = await admit("ada", team_id="red", access_level="team_level", expires_at="2100-01-31T18:00:00Z")
    await admit("bob", persona_id="tester", tool="read")
    for title in NASTY:
        content = {"title": title, "content": title * 3, "metadata": {"=a": [1, None, "é"]}}
        await workbench.dispatch(ada.caller, "write", {"content": content})
    await workbench.call("write", session_id="one", content={"title": "long", "content": "x" * 200_000})
    return workbench


@pytest.fixture
async def other(tmp_path: Path, new_database: NewDatabase) -> AsyncIterator[Workbench]:
    (tmp_path / "other").mkdir()
    async with Workbench.open(Settings(project=tmp_path / "other", port=0, **new_database())) as opened:
        yield opened


async def export_text(workbench: Workbench, resource: str, format: str = "json") -> str:
    made = await workbench.call("export", resource=resource, format=format)
    return str(made["content"])


async def rows(workbench: Workbench, resource: str) -> list[dict[str, Any]]:
    """The exported rows, without fields that stay on their machine."""
    found = json.loads(await export_text(workbench, resource))
    return [{key: value for key, value in row.items() if key not in LEFT_BEHIND} for row in found]


async def import_text(workbench: Workbench, resource: str, content: str, **how: Any) -> dict[str, Any]:
    return await workbench.call("import_records", resource=resource, content=content, **{"dry_run": False, **how})


async def copy_records(source: Workbench, target: Workbench, *resources: str) -> dict[str, Any]:
    """Import what another project exports; what is said of the last of it."""
    for resource in resources:
        made = await import_text(target, resource, await export_text(source, resource))
    return made


@pytest.mark.parametrize("format", ["csv", "json"])
async def test_an_import_restores_an_export_unchanged(filled: Workbench, other: Workbench, format: str) -> None:
    for resource in ORDER:
        content = await export_text(filled, resource, format)
        made = await import_text(other, resource, content, format=format)
        assert (len(made["added"]), made["present"], made["notes"]) == (len(await rows(filled, resource)), 0, [])
        assert await rows(other, resource) == await rows(filled, resource)
        again = await import_text(other, resource, content, format=format)
        assert (again["added"], again["present"]) == ([], len(made["added"]))


async def test_an_imported_agent_acts_once_it_has_a_token(filled: Workbench, other: Workbench) -> None:
    await copy_records(filled, other, *ORDER)
    assert (await other.call("get_agent", agent_id="ada"))["registration_status"] == "inactive"
    caller = await other.identify((await other.call("issue_token", agent_id="ada"))["token"])
    assert len((await other.dispatch(caller, "read", {"limit": 500}))["data"]) == len(NASTY)
    assert (await other.call("get_agent_history", agent_id="ada"))["entries"][-1]["kind"] == "agent.imported"


async def test_a_dry_run_of_an_import_reports_the_same_and_changes_nothing(filled: Workbench, other: Workbench) -> None:
    content = await export_text(filled, "projects")
    newest = (await other.call("list_events", after=None))["next_after"]
    rehearsed = await import_text(other, "projects", content, dry_run=True)
    assert await rows(other, "projects") == []
    assert (await other.call("list_events", after=newest))["events"] == []
    made = await import_text(other, "projects", content)
    assert rehearsed == made | {"dry_run": True}
    assert made["added"] == ["alpha"]


async def test_an_import_matches_an_existing_project_by_name(filled: Workbench, other: Workbench) -> None:
    alpha = await project(other)
    assert (await copy_records(filled, other, "projects"))["present"] == 1
    await copy_records(filled, other, "sessions")
    assert [row["project_id"] for row in await rows(other, "sessions")] == [alpha["id"]]


async def test_handwritten_rows_can_be_imported(workbench: Workbench) -> None:
    await import_text(workbench, "projects", "name,description\r\nalpha,Penguins\r\nbeta,\r\n", format="csv")
    await import_text(workbench, "sessions", '\ufeff[{"name": "one", "project": "alpha"}]')
    await import_text(workbench, "teams", "name,session\nred,one\nblue,\n", format="csv")
    assert {(row["name"], row["session"]) for row in await rows(workbench, "teams")} == {("red", "one"), ("blue", None)}
    made = await import_text(workbench, "contexts", "session,title,agent_id\none,First,ghost\n", format="csv")
    assert made["notes"] == ["Contexts whose author is not here: 1. To keep their authors, import the agents first."]
    await import_text(workbench, "agents", '[{"agent_id": "ada", "team": "red"}]')
    agent = await workbench.call("get_agent", agent_id="ada")
    assert (agent["session"], agent["team"], agent["registration_status"]) == ("one", "red", "assigned")


async def test_imported_agents_without_their_session_are_in_none(filled: Workbench, other: Workbench) -> None:
    made = await copy_records(filled, other, "agents")
    assert made["notes"] == ["Agents whose session or team is not here: 1. To keep it, import those first."]
    assert [row["session"] for row in await rows(other, "agents")] == [None, None]


async def test_pending_registrations_are_not_imported(filled: Workbench, other: Workbench) -> None:
    await filled.call("register", name="eve")
    made = await copy_records(filled, other, *ORDER[:4])
    assert made["added"] == ["ada", "bob"]
    assert made["notes"] == ["Registrations that waited for a decision, and are left out: 1."]


NO_TIMES = ["0001-01-01T00:00:00+14:00", "1969-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999999Z"]
UNKNOWN = "There is no {0} 'nowhere'. list_{0}s lists them"
PROBLEMS: dict[tuple[str, str, str], list[str]] = {
    ("projects", "json", "[{}]"): ["1 name required"],
    ("projects", "json", '[{"name": "a"}, {"name": "b", "colour": "red"}]'): ["2 colour unknown name"],
    ("projects", "json", '[{"name": "a"}, {"name": 7, "id": "../x"}]'): [
        "2 id must match ^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
        "2 name must be text",
    ],
    ("sessions", "csv", "name,project\none,nowhere\ntwo,\n"): [
        f"1 PROJECT_NOT_FOUND {UNKNOWN.format('project')}",
        "2 PROJECT_REQUIRED Give project_id or project",
    ],
    ("teams", "csv", "name,session_id\nred,nowhere\n"): [f"1 SESSION_NOT_FOUND {UNKNOWN.format('session')}"],
    ("contexts", "json", '[{"title": "a"}]'): ["1 SESSION_REQUIRED Give session_id or session"],
    ("agents", "json", json.dumps([{"agent_id": ""}, *({"agent_id": "ada", "expires_at": at} for at in NO_TIMES)])): [
        "1 agent_id must not be empty",
        *(f"{row} expires_at must be between 1970 and 9999" for row in (2, 3, 4)),
    ],
    ("contexts", "csv", f"session,created_at\none,{NO_TIMES[0]}\n"): [
        "1 created_at must be between 1970 and 9999",
    ],
    ("agents", "csv", "agent_id,persona_id\nada,wizard\nnone,\nAda,\nada,\n"): [
        "1 PERSONA_NOT_FOUND There is no persona 'wizard'. Available: implementer, planner, reviewer, tester",
        "2 BAD_AGENT_ID An agent id has 1 to 64 letters, digits, '.', '_' or '-', begins with a letter or digit, "
        "and is not a reserved word, such as none or everyone",
        "4 AGENT_ID_TAKEN Agent ID 'Ada' already exists. Choose another",
    ],
}


@pytest.mark.parametrize(("file", "problems"), PROBLEMS.items())
async def test_a_row_that_cannot_be_added_is_named_and_nothing_is_added(
    workbench: Workbench, file: tuple[str, str, str], problems: list[str]
) -> None:
    resource, format, content = file
    for dry_run in (True, False):
        with pytest.raises(BadInput, match="IMPORT_INVALID") as caught:
            await import_text(workbench, resource, content, format=format, dry_run=dry_run)
        found = [
            f"{problem['row']} {problem['field']} {problem['reason']}" for problem in caught.value.details["problems"]
        ]
        assert found == problems
        assert await rows(workbench, resource) == []


async def test_a_file_that_is_no_export_is_refused(workbench: Workbench) -> None:
    for format, contents in (
        ("json", ["{", "{}", "[1]", '[{"name": NaN}]']),
        ("csv", ['name\n"open', "name,description\na\n", "name\na,b\n"]),
    ):
        for content in contents:
            with pytest.raises(BadInput, match="IMPORT_INVALID: The file cannot be read: "):
                await import_text(workbench, "projects", content, format=format)


async def test_only_the_operator_imports(workbench: Workbench, admit: Admit) -> None:
    planner = await admit("pam", role="planner", access_level="session_level")
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(planner.caller, "import_records", {"resource": "agents", "content": "[]"})
    assert (await import_text(workbench, "agents", "[]"))["added"] == []


@given(st.text())
def test_a_cell_reads_back_unchanged_and_is_no_formula(text: str) -> None:
    cell = export._cell("title", text)
    assert not cell.startswith(export.FORMULA)
    assert import_file._value("title", cell) == (text or None)
