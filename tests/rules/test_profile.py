"""Launch profiles as data: what a file may say, and what is filled into a template."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.rules.profile import FILLED_IN, fill, mcp_config, parse
from workbench.settings import shipped

SHIPPED = sorted(path.stem for path in shipped("data", "profiles").glob("*.yaml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_is_valid_and_says_what_it_is(name: str) -> None:
    profile = parse(name, shipped("data", "profiles", f"{name}.yaml").read_text("utf-8"))
    assert profile.name == name
    assert profile.summary.endswith(".")
    values = dict.fromkeys(FILLED_IN, 'a "quoted" \\ line\nand another')
    for file, text in profile.files.items():
        filled = fill(text, values, file=file)
        read = json.loads if file.endswith(".json") else tomllib.loads
        assert read(filled)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, "summary: required"),
        ({"summary": ""}, "summary:"),
        ({"summary": "x", "command": []}, "command:"),
        ({"summary": "x", "command": "echo"}, "command:"),
        ({"summary": "x", "comand": ["a"]}, "comand: unknown name"),
        ({"summary": "x", "name": "other"}, "must be that of the file"),
        ({"summary": "x", "files": {"../a": ""}}, "without '..'"),
        ({"summary": "x", "files": {"/a": ""}}, "a path below"),
        ({"summary": "x", "copies": ["a/../../b"]}, "a path below"),
        ({"summary": "x", "answer_file": "a/b"}, "answer_file:"),
        ({"summary": "x", "environment": {"LD_PRELOAD": "x"}}, "must be a variable name"),
        ({"summary": "x", "environment": {"WORKBENCH_URL": "x"}}, "must be a variable name"),
        ({"summary": "x", "passes": ["GIT_DIR"]}, "must be a variable name"),
        ({"summary": "x", "passes": ["A B"]}, "a variable"),
        ({"summary": "x", "connect": [0]}, "connect"),
        ({"summary": "x", "connect": ["anything"]}, "connect"),
        ({"summary": "x", "command": ["a", "{token}"]}, "{token} needs token: true"),
        ({"summary": "x", "command": ["a"], "environment": {"A": "{mcp_config}"}}, "needs token: true"),
        ({"summary": "x", "command": ["a"], "prompt": "{token}"}, "needs token: true"),
        ([], "a mapping"),
        (None, "a mapping"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(said: Any, why: str) -> None:
    error = refused("PROFILE_INVALID", parse, "mine", yaml.safe_dump(said))
    assert why in error.message
    assert error.details == {"profile": "mine"}


@pytest.mark.parametrize("text", ["a: [", "\0", "a: !!int x", "- &a [*a]", "{" * 3000])
def test_what_is_no_yaml_is_refused(text: str) -> None:
    refused("PROFILE_INVALID", parse, "mine", text)


@given(st.text(), st.text())
def test_what_is_filled_in_is_not_read_again(value: str, other: str) -> None:
    values = {"title": value, "token": other}
    assert fill("<{title}>", values) == f"<{value}>"
    assert fill("{unknown} {Title} {} {{title}}", values) == "{unknown} {Title} {} {" + value + "}"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_in_json_and_toml_what_is_filled_in_stays_a_string(value: str) -> None:
    assert json.loads(fill('{"a": "{title}"}', {"title": value}, file="x.json")) == {"a": value}
    assert tomllib.loads(fill('a = "{title}"', {"title": value}, file="x.toml")) == {"a": value}


def test_the_configuration_that_many_clients_read_has_the_address_and_the_token() -> None:
    found = mcp_config("http://127.0.0.1:1/mcp", "wba_x")["mcpServers"]["workbench"]
    assert (found["url"], found["headers"]) == ("http://127.0.0.1:1/mcp", {"Authorization": "Bearer wba_x"})
