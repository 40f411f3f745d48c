"""The description of the HTTP interface: valid, whole and true."""

from __future__ import annotations

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests import given
from tests.conftest import Admit, Served
from tests.shells.conftest import Visit, error_of
from workbench.model import Level
from workbench.ops import collect
from workbench.services import SERVICES
from workbench.shells.http import openapi

pytestmark = pytest.mark.anyio

CATALOGUE = collect(SERVICES)
ROUTES = [(op, op.rest) for op in CATALOGUE.values() if op.rest]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi.document(CATALOGUE)


@pytest.mark.long
def test_the_description_is_valid(document: dict[str, Any]) -> None:
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_the_description_has_every_operation_by_a_unique_name(document: dict[str, Any]) -> None:
    for op in CATALOGUE.values():
        described = document["paths"][f"/api/ops/{op.name}"]["post"]
        assert (described["operationId"], described["summary"]) == (op.name, op.summary)
        assert described["x-least-caller"] == op.allow.name.lower()
        assert ("security" in described) == (op.allow is Level.ANONYMOUS)
    for _, endpoint in ROUTES:
        for prefix in ("", "/api"):
            assert endpoint.method.lower() in document["paths"][prefix + endpoint.path]
    named = [o["operationId"] for path in document["paths"].values() for o in path.values() if "operationId" in o]
    assert len(named) == len(set(named)) == len(CATALOGUE) + 2 * len(ROUTES)


def test_the_parameters_of_an_endpoint_are_those_of_its_operation(document: dict[str, Any]) -> None:
    for op, endpoint in ROUTES:
        described = document["paths"][endpoint.path][endpoint.method.lower()]
        names = {parameter["name"] for parameter in described.get("parameters", [])}
        schema = described.get("requestBody", {"content": {"application/json": {"schema": {}}}})
        body = schema["content"]["application/json"]["schema"].get("properties", {})
        named = names | ({endpoint.body} if endpoint.body else body.keys())
        assert named == op.arguments.model_fields.keys(), endpoint


async def test_answers_of_the_server_fit_its_description(served: Served, visit: Visit) -> None:
    operator = visit(served.workbench.operator_token)
    document = (await operator.get("/api/openapi.json")).json()
    await given.project(served.workbench, "Penguins")
    await served.workbench.call("register", name="Ada")
    asked = 0
    for path, methods in document["paths"].items():
        if "get" in methods and "{" not in path:
            response = await operator.get(path)
            schema = methods["get"]["responses"]["200"]["content"]["application/json"]["schema"]
            Draft202012Validator(schema | {"components": document["components"]}).validate(response.json())
            asked += 1
    assert asked > 10
    schema = document["components"]["responses"]["401"]["content"]["application/json"]["schema"]
    refusal = (await visit().get("/projects")).json()
    Draft202012Validator(schema | {"components": document["components"]}).validate(refusal)


async def test_only_an_admitted_agent_gets_the_description(visit: Visit, admit: Admit) -> None:
    assert error_of(await visit().get("/api/openapi.json")) == (401, "TOKEN_REQUIRED")
    reply = (await visit((await admit("eve", tool="read")).token).get("/api/openapi.json")).json()
    assert reply == openapi.document(CATALOGUE)
    assert not re.search(r"wb[ao]_\w{20}", str(reply))
