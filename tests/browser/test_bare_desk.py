"""The connection of the desk that the tests here disturb: undisturbed, it is like that of a notebook."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import view, wait_until

HOLD_FRAMES = """() => {
  const { take, requestAnimationFrame: draw } = window;
  const held = [];
  window.taken = 0;
  window.take = (...message) => ((window.taken += 1), take(...message));
  window.requestAnimationFrame = (callback) => held.push(callback);
  window.releaseFrames = () => {
    window.requestAnimationFrame = draw;
    for (const callback of held) draw(callback);
  };
}"""


def test_messages_reach_a_page_that_draws_slowly_in_the_order_in_which_they_were_sent(
    open_bare_desk: Callable[..., BareDesk],
) -> None:
    desk = open_bare_desk()
    view(desk.element, "Inbox")
    desk.page.evaluate(HOLD_FRAMES)
    desk.hold_rows()
    for name in ("ada", "bob"):
        _register(desk, name)
    desk.release_news()
    desk.page.wait_for_function("() => window.taken > 0", polling=20)
    _register(desk, "cyd")
    desk.page.wait_for_function("() => window.taken > 1", polling=20)
    desk.page.evaluate("() => window.releaseFrames()")
    expect(desk.element.get_by_role("listitem", name="cyd", exact=True)).to_be_visible()
    assert [message["kind"] for message in desk.asked].count("resync") == 1


def _register(desk: BareDesk, name: str) -> None:
    """Register an agent, and wait for the diff about it."""
    desk.host.call("register", name=name, persona_id="planner")
    wait_until(lambda: any(f'"{name}"' in rows for _, rows in desk.sent), f"the page is sent {name}")
