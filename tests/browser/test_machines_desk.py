"""The machines that share a project, in the panel of one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import view
from tests.conftest import git
from workbench.state.database_url import VARIABLE, DatabaseUrl

pytestmark = [pytest.mark.postgres, pytest.mark.long]


def test_the_admin_tab_lists_the_machines_that_share_the_project_and_a_worktree_says_where_it_is(
    postgres_url: str, open_bare_desk: Callable[..., BareDesk], tmp_path: Path
) -> None:
    desk = open_bare_desk(database_url=DatabaseUrl(postgres_url), machine="alpha")
    git("clone", "-q", str(desk.project.path), "beta", cwd=tmp_path)
    env = os.environ | {VARIABLE: postgres_url, "WORKBENCH_MACHINE": "beta"}
    for words in (["init"], ["worktrees", "create", "lab"]):
        argv = [sys.executable, "-m", "workbench.cli", "--project", "beta", *words]
        made = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert made.returncode == 0, made.stderr
    view(desk.element, "Admin")
    machines = desk.element.locator("section").filter(has=desk.page.get_by_role("heading", name="Machines"))
    expect(machines.get_by_role("listitem")).to_have_text(
        ["alphaits server is running · this one · does what is done once", "betano server runs"]
    )
    view(desk.element, "Worktrees")
    expect(desk.element.get_by_text("The worktree lab is on the machine beta")).to_be_visible()
