"""The panel beside a notebook, as narrow as a side panel: it fits, and what each line is about can be read."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import expect_fitting, resize, view
from tests.browser.scenes import TABS, busy, measured

NARROW = 360


@pytest.mark.long
def test_every_tab_fits_a_side_panel_and_the_titles_of_tasks_can_be_read(desk: BareDesk) -> None:
    busy(desk.project)
    measured(desk.project)
    resize(desk.element, NARROW)
    for name in TABS:
        view(desk.element, name)
        if name == "Runs":
            expect(desk.element.get_by_role("button", name="1 baseline")).to_be_visible()
        expect_fitting(desk.element, name)
    view(desk.element, "Tasks")
    title = desk.element.locator(".wb-title", has_text="Clean the raw measurements")
    assert title.evaluate("e => e.offsetWidth") > 120
