"""The panel in a JupyterLab below a path of its own, as JupyterHub and proxies serve it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.desk_lab import Lab, Project, started_lab, view
from tests.browser.scenes import repository, worktree

PREFIX = "/user/ada/"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with started_lab(tmp_path_factory.mktemp("prefixed"), base_url=PREFIX) as lab:
        yield lab


def test_the_panel_works_below_a_prefix_and_requests_nothing_outside_it(
    lab: Lab, open_desk: Callable[..., Locator], project: Project, page: Page
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url.replace("ws://", "http://", 1)))
    repository(project.path)
    desk = open_desk()
    assert lab.url.endswith(PREFIX)
    project.call("register", name="ada", persona_id="planner")
    desk.get_by_role("button", name="Admit").click()
    expect(desk).to_contain_text("Admitted as ada.")
    worktree(project, "robust", {"stats.py": "def mean(values):\n    return sum(values) / len(values)\n"})
    view(desk, "Worktrees")
    desk.get_by_role("button", name="robust", exact=True).click()
    expect(desk.locator(".wb-diff-added").first).to_contain_text("def mean")  # its code is loaded when it is needed
    assert any("/api/kernels/" in url for url in asked)
    assert [url for url in asked if not url.startswith((lab.url, "blob:", "data:"))] == []
