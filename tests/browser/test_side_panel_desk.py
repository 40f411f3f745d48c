"""The panel beside a notebook, as narrow as a side panel: it fits, and what each line is about can be read."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import expect_fitting, resize, view
from tests.browser.scenes import TABS, busy, defined, measured

NARROW = 360


def test_every_tab_fits_a_side_panel_and_the_titles_of_tasks_can_be_read(desk: BareDesk) -> None:
    busy(desk.project)
    measured(desk.project)
    defined(desk.project)
    resize(desk.element, NARROW)
    for name in TABS:
        view(desk.element, name)
        if name == "Runs":
            expect(desk.element.get_by_role("button", name="1 baseline")).to_be_visible()
        expect_fitting(desk.element, name)
    view(desk.element, "Tasks")
    title = desk.element.locator(".wb-title", has_text="Clean the raw measurements")
    assert title.evaluate("e => e.offsetWidth") > 120
    view(desk.element, "Definitions")
    desk.element.get_by_role("button", name="Careful reviewer", exact=True).click()
    pane = desk.element.get_by_role("region", name="Careful reviewer", exact=True)
    title, close = pane.locator(".wb-pane-title"), pane.get_by_label("Close the definition")
    tops = [one.evaluate("e => e.getBoundingClientRect().top") for one in (title, close)]
    assert abs(tops[0] - tops[1]) < 20, "both are on the first line"
    assert title.evaluate("e => e.offsetHeight") < 30
