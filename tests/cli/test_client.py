"""The command line's way to a project."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from workbench.cli.client import ProjectClient


def test_ctrl_c_between_two_calls_meets_no_event_loop_that_is_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ProjectClient(tmp_path) as client:
        client.create_project()
        monkeypatch.delattr(asyncio.SelectorEventLoop, "__init__")
        monkeypatch.setattr(asyncio.SelectorEventLoop, "__init__", lambda _: pytest.fail("A loop is made."))
        assert client.call("list_runs")["runs"] == []
        assert client.find_server() is None
