"""The endpoints of spec 1's server, with and without the prefix: another name of an operation, and nothing else."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

import httpx2
import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.shells.conftest import Visit, error_of
from workbench.errors import BadInput
from workbench.model import Level
from workbench.ops import collect
from workbench.services import SERVICES
from workbench.shells.http import rest

pytestmark = pytest.mark.anyio

CATALOGUE = collect(SERVICES)
ROUTES = [(op, op.rest) for op in CATALOGUE.values() if op.rest]


# The table


def test_every_endpoint_names_an_operation_and_its_arguments() -> None:
    for op, endpoint in ROUTES:
        arguments = op.arguments.model_fields
        named = {part.strip("{}") for part in endpoint.path.split("/") if part.startswith("{")}
        assert named <= arguments.keys(), endpoint
        assert endpoint.body is None or endpoint.body in arguments, endpoint
    assert len({(endpoint.method, endpoint.path) for _, endpoint in ROUTES}) == len(ROUTES)


def test_only_operations_that_read_have_the_method_get() -> None:
    for op, endpoint in ROUTES:
        assert op.reads == (endpoint.method == "GET"), endpoint


HUGE = "9" * 5_000
QUERIES: list[tuple[str, str, dict[str, Any]]] = [
    ("list_agents", "limit=5&deleted=true&search=5", {"limit": 5, "deleted": "true", "search": "5"}),
    ("list_agents", "session_id=null&cursor=x", {"session_id": "null", "cursor": "x"}),
    ("list_events", "after=null", {"after": None}),
    ("list_events", "after=-1&wait_seconds=0.5", {"after": -1, "wait_seconds": "0.5"}),
    ("list_events", "kinds=a,b&kinds=c", {"kinds": ["a", "b", "c"]}),
    ("list_events", "after=soon&colour=red", {"after": "soon", "colour": "red"}),
    ("list_events", f"after={HUGE}", {"after": HUGE}),
    ("read", 'filters={"title": "x"}&since=17', {"filters": {"title": "x"}, "since": 17}),
    ("read", "since=2026-01-01T00:00:00Z", {"since": "2026-01-01T00:00:00Z"}),
]


@pytest.mark.parametrize(("op", "query", "expected"), QUERIES)
def test_a_query_string_becomes_arguments_by_the_schema(op: str, query: str, expected: dict[str, Any]) -> None:
    assert rest.from_query(CATALOGUE[op], parse_qsl(query)) == expected


@pytest.mark.parametrize("text", ["{", "", "[" * 100_000])
def test_an_object_in_a_query_string_is_json(text: str) -> None:
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        rest.from_query(CATALOGUE["read"], [("filters", text)])


# The server


@pytest.mark.parametrize("prefix", ["", "/api"])
async def test_projects_sessions_and_teams_are_created_changed_deleted_and_restored(
    served: Served, operator: httpx2.AsyncClient, prefix: str
) -> None:
    for noun in ("project", "session", "team"):
        await _live(served, operator, prefix, noun)


async def _live(served: Served, operator: httpx2.AsyncClient, prefix: str, noun: str) -> None:
    path = f"{prefix}/{noun}s"
    project = await given.project(served.workbench, f"Penguins {path}")
    body = {"name": "Ö & co", "description": "x"} | ({"project_id": project["id"]} if noun == "session" else {})

    async def answered(method: str, path: str, **more: Any) -> Any:
        response = await operator.request(method, path, **more)
        assert response.status_code == 200, response.text
        answer = response.json()
        if prefix:
            assert answer.keys() == {"success", "data"}
        return answer["data"] if prefix else answer

    made = await answered("POST", path, json=body)
    here = f"{path}/{made['id']}"
    assert (
        made == await answered("GET", here) == await served.workbench.call(f"get_{noun}", **{f"{noun}_id": made["id"]})
    )
    assert (await answered("PATCH", here, json={"name": "New"}))["name"] == "New"
    assert (await answered("PATCH", here, json={}))["name"] == "New"
    await answered("DELETE", here)
    assert error_of(await operator.get(here)) == (404, f"{noun.upper()}_NOT_FOUND")
    gone = await answered("GET", path, params={"deleted": "true"})
    assert [row["id"] for row in (gone[f"{noun}s"] if prefix else gone)] == [made["id"]]
    await answered("POST", f"{here}/restore")
    assert (await answered("GET", here))["name"] == "New"


async def test_without_a_prefix_a_list_is_an_array_and_its_headers_tell_the_rest(
    served: Served, operator: httpx2.AsyncClient
) -> None:
    for number in range(3):
        await given.project(served.workbench, f"Project {number}")
    first = await operator.get("/projects", params={"limit": "2"})
    assert [row["name"] for row in first.json()] == ["Project 0", "Project 1"]
    assert first.headers["X-Total-Count"] == "3"
    rest_of_it = await operator.get("/projects", params={"cursor": first.headers["X-Next-Cursor"]})
    assert [row["name"] for row in rest_of_it.json()] == ["Project 2"]
    assert "X-Next-Cursor" not in rest_of_it.headers
    whole = (await operator.get("/api/projects")).json()["data"]
    assert (len(whole["projects"]), whole["total"], whole["next_cursor"]) == (3, 3, None)
    assert (await operator.head("/projects")).content == b""


async def test_an_agent_is_registered_admitted_changed_and_revoked(visit: Visit, operator: httpx2.AsyncClient) -> None:
    reply = (await visit().post("/agents", json={"name": "Ada"})).json()
    [asked] = (await operator.get("/approvals")).json()
    assert asked["id"] == reply["approval_id"]
    granted = {"choices": {"agent_id": "ada", "tool": "read"}}
    assert (await operator.post(f"/approvals/{asked['id']}/approve", json=granted)).status_code == 200
    assert (await operator.get("/agents/ada")).json()["tool"] == "read"
    changed = await operator.patch("/agents/ada", json={"tool": "write", "name": "Ada L."})
    assert (changed.json()["tool"], changed.json()["name"]) == ("write", "Ada L.")
    token = (await operator.post("/api/agents/ada/token")).json()["data"]["token"]
    assert error_of(await visit(reply["token"]).get("/agents")) == (401, "INVALID_TOKEN")
    assert [row["agent_id"] for row in (await visit(token).get("/agents")).json()] == ["ada"]
    assert (await operator.post("/agents/ada/revoke", json={"reason": "Done"})).status_code == 200
    assert error_of(await visit(token).get("/agents")) == (401, "INVALID_TOKEN")
    other = (await visit().post("/api/agents", json={"name": "Eve"})).json()["data"]
    await operator.post(f"/api/approvals/{other['approval_id']}/reject", json={"reason": "Not now"})
    assert (await operator.get("/approvals")).json() == []


async def test_contexts_are_written_read_and_changed(served: Served, visit: Visit, admit: Admit) -> None:
    await given.project(served.workbench)
    session = await given.session(served.workbench, "One")
    ada = visit((await admit("ada", session_id=session["id"])).token)
    reply = (await ada.post("/contexts", json={"title": "Notes", "content": "Bills are long."})).json()
    assert reply["status"] == "success"
    [row] = (await ada.get("/contexts", params={"limit": "5", "filters": '{"title": "Notes"}'})).json()
    assert (row["title"], row["content"]) == ("Notes", "Bills are long.")
    here = f"/contexts/{reply['context_id']}"
    assert (await ada.patch(here, json={"content": "Short."})).json()["content"] == "Short."
    assert (await ada.get(f"/api{here}")).json()["data"]["content"] == "Short."
    operator = visit(served.workbench.operator_token)
    there = await operator.post(
        "/contexts", params={"session_id": session["id"]}, json={"title": "Mine", "content": "x"}
    )
    assert there.json()["sequence_number"] == reply["sequence_number"] + 1


async def test_an_endpoint_allows_no_more_than_its_operation(served: Served, visit: Visit, admit: Admit) -> None:
    ada = visit((await admit("ada")).token)
    for op, endpoint in ROUTES:
        path = re.sub(r"{\w+}", "1", endpoint.path)
        for prefix in ("", "/api"):
            if op.name != "register":
                assert error_of(await visit().request(endpoint.method, prefix + path)) == (401, "TOKEN_REQUIRED"), path
            if op.allow is Level.OPERATOR:
                assert error_of(await ada.request(endpoint.method, prefix + path)) == (403, "FORBIDDEN"), path
    operator = visit(served.workbench.operator_token)
    assert error_of(await operator.post("/approvals/one/approve")) == (400, "INVALID_ARGUMENTS")
    assert error_of(await operator.get("/projects?colour=red")) == (400, "INVALID_ARGUMENTS")
    assert error_of(await operator.post("/projects", content=b"[]")) == (400, "BAD_MESSAGE")
