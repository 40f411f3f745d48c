"""The offerer of a tool decides which words of a grant cover it, and how a question names it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.services.tools.conftest import tool_of
from workbench.model import Level
from workbench.ops import OPERATOR
from workbench.rules.personalities.addresses import node_label
from workbench.rules.tools.servers import RESERVED, problem_of_name
from workbench.services.tools.tool import Offerer, OffererKind, ToolInfo, ToolKind, ToolPlace

NODE = f"orn:koi-net.node:field+{'830c0d' + '1' * 58}"
FUNCTION: dict[str, Any] = {"kind": ToolKind.FUNCTION, "source": ToolPlace.LOCAL, "server": None}
TRAIT: dict[str, Any] = {"kind": ToolKind.TRAIT, "own_name": "mean"}
BY = {
    "notebook": Offerer(OffererKind.NOTEBOOK, name="a.ipynb (kernel 7)"),
    "project": Offerer(OffererKind.PROJECT, configuration="1"),
    "definition": Offerer(OffererKind.DEFINITION, "d1", "ours” of the project", "1"),
    "node": Offerer(OffererKind.NODE, NODE, "field"),
}


def offered_tool(name: str, by: str, **more: Any) -> ToolInfo:
    return replace(tool_of(name), offered_by=BY[by], **more)


def granted(tool: ToolInfo, *words: str) -> list[str]:
    """The words of which each alone grants a tool."""
    caller = replace(OPERATOR, level=Level.WORKER)
    return [word for word in words if tool.is_granted_to(replace(caller, tools=frozenset({word})))]


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (offered_tool("mean", "notebook", **FUNCTION), ["*", "notebook", "mean"]),
        (offered_tool("network", "notebook", **FUNCTION), ["*", "notebook"]),
        (offered_tool("hub__mean", "project"), ["*", "hub", "hub__mean"]),
        (offered_tool("network__mean", "project", server="network"), ["*", "network__mean"]),
        (offered_tool("notebook__mean", "definition", server="notebook"), ["*", "notebook__mean"]),
        (offered_tool("notebook__mean", "project", server="notebook", **TRAIT), ["*", "notebook__mean"]),
        (offered_tool("notebook__mean", "node", server="notebook", **TRAIT), ["*", "network", "network:notebook"]),
        (offered_tool("hub__mean", "node", **TRAIT), ["*", "network", "network:hub", "network:hub__mean"]),
    ],
)
def test_a_word_of_a_grant_covers_the_tools_of_one_kind_of_offerer(tool: ToolInfo, words: list[str]) -> None:
    asked = ["*", *RESERVED, "hub", "mean", "hub__mean", "network__mean", "notebook__mean"]
    assert sorted(granted(tool, *asked, *(f"network:{word}" for word in ("hub", "hub__mean", "notebook")))) == sorted(
        words
    )


def test_no_server_may_have_a_reserved_word_as_its_name() -> None:
    assert all(problem_of_name(word) for word in RESERVED)


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        (offered_tool("mean", "notebook", **FUNCTION), "Your function mean (a.ipynb (kernel 7))"),
        (offered_tool("ada__mean", "notebook", server="ada", **TRAIT), "Your trait mean of ada (a.ipynb (kernel 7))"),
        (offered_tool("hub__mean", "project"), "A tool of the MCP server hub of this project"),
        (
            offered_tool("hub__mean", "definition"),
            'A tool of the MCP server hub of the definition “ours" of the project”',
        ),
        (
            offered_tool("ada__mean", "node", server="ada", **TRAIT),
            "The trait “mean” of the agent “ada” on the node field·830c0d",
        ),
    ],
)
def test_a_question_names_the_owner_of_a_tool_and_quotes_foreign_names(tool: ToolInfo, says: str) -> None:
    assert tool.origin == says


def test_two_nodes_of_a_name_look_different() -> None:
    assert node_label(NODE) != node_label(NODE.replace("830c0d", "12ab34"))
