"""The rules of axe-core: none is broken in any tab, light at three widths and dark at one of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import ROOT, resize, shot, view, wearing
from tests.browser.scenes import TABS, measured, work

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed; npm ci installs it")
WIDTHS = (700, 1100, 1600)
BROKEN = """async () => {
  const { violations } = await axe.run(".wb-desk", { resultTypes: ["violations"] });
  return violations.map(({ id, nodes }) => [id, nodes.map((node) => [node.html.slice(0, 200), node.failureSummary])]);
}"""
"""The rules that the desk breaks, each with the elements that break it and why."""


@pytest.fixture
def full_desk(open_bare_desk: Callable[..., BareDesk]) -> BareDesk:
    """Of a project with something in every tab."""
    desk = open_bare_desk(integration_gates=["test ! -e broken.py"])
    work(desk.project)
    measured(desk.project)
    desk.host.call("join_network", name="lab")
    desk.host.call("publish_personality", name="careful-ada", version="1.0", traits={"patience": 3})
    return desk


def test_no_tab_breaks_a_rule_of_accessibility(full_desk: BareDesk) -> None:
    page, element = full_desk.page, full_desk.element
    page.add_script_tag(path=AXE)
    broken = {}
    widths = WIDTHS
    for name in TABS:
        view(element, name)
        page.wait_for_load_state("networkidle")
        looks = [("light", width) for width in widths] + [("dark", widths[-1])]
        widths = widths[::-1]  # from where the last tab was looked at, so that the dark theme is seen wide and narrow
        for theme, width in looks:
            with wearing(page, theme) if theme == "dark" else nullcontext():
                resize(element, width)
                shot(element, f"tabs/{name}-{width}-{theme}")
                if found := page.evaluate(BROKEN):
                    broken[name, theme, width] = found
    assert broken == {}


def test_a_control_without_a_name_breaks_a_rule(desk: BareDesk) -> None:
    desk.page.add_script_tag(path=AXE)
    desk.element.evaluate("desk => desk.append(document.createElement('input'))")
    [[rule, _]] = desk.page.evaluate(BROKEN)
    assert rule == "label"
