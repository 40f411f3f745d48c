"""`workbench koi` and `workbench personalities` where no server runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Type, code, data


def test_a_project_takes_part_only_when_it_is_told_to(run: Type) -> None:
    assert run("koi").out.startswith("This project takes no part in a KOI network.")
    assert data(run("--json", "koi", "status"))["joined"] is False
    assert run("koi", "join", "--name", "lab").out.startswith("This project is the node lab. It takes part while")
    assert data(run("--json", "koi"))["name"] == "lab"
    assert code(run("koi", "leave")) == "NOT_CONFIRMED"
    assert run("koi", "leave", "--yes").out.startswith("This project takes no part")


def test_peers_are_listed_and_an_unknown_one_is_named(run: Type) -> None:
    assert run("koi", "peers").out == "No other node is known.\n"
    refused = run("koi", "peers", "nobody")
    assert (code(refused), "`workbench koi peers`" in refused.err) == ("PEER_NOT_FOUND", True)


def test_personalities_are_made_without_a_network(run: Type) -> None:
    assert "No personalities are known" in run("personalities").out
    made = data(run("--json", "personalities", "publish", "ada", "mood=curious", 'languages=["Python", "R"]'))
    assert made["name"] == "ada"
    assert run("personalities", "set", "ada", "mood=tired").out == "The traits of ada are changed.\n"
    assert code(run("personalities", "withdraw", "ada")) == "NOT_CONFIRMED"
    assert run("personalities", "withdraw", "ada", "--yes").out == "ada is withdrawn.\n"
    assert code(run("personalities", "set", "ada", "mood=tired")) == "PERSONALITY_NOT_FOUND"


def test_a_personality_that_is_published_again_keeps_its_traits(run: Type) -> None:
    run("personalities", "publish", "ada", "mood=curious")
    again = data(run("--json", "personalities", "publish", "ada", "--version", "2.0"))
    assert [trait["name"] for trait in again["traits"] if trait["value"] == "curious"] == ["mood"]


@pytest.mark.parametrize("role", ["agent", "coordinator"])
def test_a_role_needs_its_section_of_the_configuration(role: str, run: Type, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    for content in (b"{}", b"\xff"):
        file.write_bytes(content)
        assert code(run("koi", role, "--config", str(file))) == "KOI_CONFIG_INVALID"
