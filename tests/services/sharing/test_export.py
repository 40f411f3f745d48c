"""Exports of records that are not deleted: CSV without formulas, or JSON; and never a secret."""

from __future__ import annotations

import csv
import io
import json
from itertools import product
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit
from workbench.app import Workbench
from workbench.errors import BadInput, Refused
from workbench.rules import access
from workbench.services.sharing import export

pytestmark = pytest.mark.anyio

TABLES = ["agents", "contexts", "projects", "sessions", "teams"]
RESOURCES = [*TABLES, "events"]
NASTY = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", 'say "hello", you', "two\nlines", "é\N{PENGUIN}", " =1", ""]


@pytest.fixture
async def filled(workbench: Workbench) -> Workbench:
    """A project with a session, a team, and contexts with titles that are hard to write down."""
    await given.project(workbench)
    await given.session(workbench, "one")
    await given.team(workbench, "red", "one")
    for title in NASTY:
        content = {"title": title, "content": "x", "metadata": {"=a": 1}}
        await workbench.call("write", session_id="one", content=content)
    return workbench


async def rows(workbench: Workbench, resource: str, format: str = "json") -> list[dict[str, Any]]:
    text = (await workbench.call("export", resource=resource, format=format))["content"]
    found: list[dict[str, Any]] = json.loads(text) if format == "json" else list(csv.DictReader(io.StringIO(text, "")))
    return found


async def test_a_json_export_holds_every_field_unchanged(filled: Workbench) -> None:
    found = await rows(filled, "contexts")
    assert [row["title"] for row in found] == NASTY
    one = (await filled.call("read", filters={"sequence_after": 10}))["data"][0]
    assert found[-1] == {key: one[key] for key in found[-1]}
    assert (found[0]["metadata"], found[0]["sequence_number"], found[0]["agent_id"]) == ({"=a": 1}, 1, None)


async def test_a_csv_export_follows_the_standard_and_has_no_formula(filled: Workbench) -> None:
    text = (await filled.call("export", resource="contexts", format="csv"))["content"]
    assert text.startswith("id,project_id,session_id,session,sequence_number,agent_id,title,content,metadata,")
    assert text.count("\r\n") == len(NASTY) + 1
    formulas = ("=", "+", "-", "@", "\t", "\r")
    titles = [row["title"] for row in await rows(filled, "contexts", "csv")]
    assert titles == [f"'{title}" if title.startswith(formulas) else title for title in NASTY]


async def test_csv_and_json_exports_have_equal_rows_and_no_token(filled: Workbench, admit: Admit) -> None:
    ada = await admit("ada", team_id="red")
    await filled.dispatch(ada.caller, "write", {"content": {"title": "mine"}})
    for resource in RESOURCES:
        as_json, as_csv = await rows(filled, resource), await rows(filled, resource, "csv")
        assert len(as_json) == len(as_csv) > 0
        assert {tuple(row) for row in as_json} == {tuple(row) for row in as_csv}
        times = [value for row in as_json for key, value in row.items() if key.endswith("_at") and value is not None]
        assert all(str(value).endswith("Z") for value in times)
        for text in (json.dumps(as_json), json.dumps(as_csv)):
            assert not any(secret in text for secret in (ada.token, access.token_hash(ada.token), "token_hash"))


async def test_an_export_of_nothing_is_a_header_or_an_empty_list(workbench: Workbench) -> None:
    for resource, format in product(TABLES, ("csv", "json")):
        made = await workbench.call("export", resource=resource, format=format)
        assert made["filename"].startswith(f"workbench-{resource}-")
        assert made["filename"].endswith(f".{format}")
        if format == "json":
            assert (made["content_type"], json.loads(made["content"])) == ("application/json", []), resource
        else:
            assert made["content_type"] == "text/csv; charset=utf-8"
            assert len(made["content"].split("\r\n")) == 2, resource


async def test_deleted_records_and_their_contents_are_not_exported(filled: Workbench, admit: Admit) -> None:
    await admit("ada", team_id="red")
    await filled.call("delete_agent", agent_id="ada")
    await filled.call("delete_project", project_id="alpha")
    assert [await rows(filled, resource) for resource in TABLES] == [[]] * len(TABLES)


async def test_events_are_exported_in_order_and_more_than_a_page_of_them(filled: Workbench) -> None:
    for number in range(export.PAGE + 1):
        await filled.call("create_team", name=f"t{number}")
    found = await rows(filled, "events")
    listed = (await filled.call("list_events", limit=1_000))["events"]
    assert [row["id"] for row in found] == [event["id"] for event in listed]
    assert found[-1] == listed[-1]
    assert len({row["id"] for row in await rows(filled, "teams")}) == export.PAGE + 2


async def test_only_the_person_exports_and_nothing_too_large_to_send(
    filled: Workbench, admit: Admit, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner = await admit("pam", role="planner", access_level="session_level")
    with pytest.raises(Refused, match="FORBIDDEN"):
        await filled.dispatch(planner.caller, "export", {"resource": "agents"})
    for resource in ("attempts", "agents; DROP TABLE agents"):
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await filled.call("export", resource=resource)
    monkeypatch.setattr(export, "LARGEST", 1_000)
    with pytest.raises(BadInput, match="TOO_LARGE"):
        await filled.call("export", resource="contexts", format="csv")
