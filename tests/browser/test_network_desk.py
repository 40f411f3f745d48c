"""The network in the panel: joined and left there, with its nodes as a graph and a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import expect

from kernel_ext.hosting.host import KernelHost
from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import shot, wait_until
from tests.services.personalities.nodes import reject

MEAN = {
    "name": "mean",
    "description": "The mean of numbers.",
    "parameters": {"type": "object", "properties": {"values": {"type": "array"}}},
    "version": "v1",
    "trait": "ada",
}


@pytest.fixture
def desk(desk: BareDesk) -> BareDesk:
    desk.element.get_by_role("tab", name="Personalities").click()
    desk.element.get_by_role("button", name="Network", exact=True).click()
    return desk


def join(desk: BareDesk, coordinator: KernelHost) -> None:
    assert coordinator.info is not None
    desk.element.get_by_role("button", name="Join a network…").click()
    form = desk.element.get_by_role("form", name="Join a network")
    form.get_by_label("Address of the first contact").fill(f"{coordinator.info.url}/koi-net")
    form.get_by_label("Name of this node").fill("lab")
    form.get_by_role("button", name="Join").click()
    expect(desk.element).to_contain_text(re.compile("Joined as lab·[0-9a-f]{6}, 1 other node"))


def test_a_project_joins_a_network_blocks_a_node_of_it_with_the_keyboard_and_leaves_it(
    desk: BareDesk, coordinator: KernelHost
) -> None:
    expect(desk.element).to_contain_text("This project is in no network")
    desk.element.get_by_role("button", name="Join a network…").click()
    form = desk.element.get_by_role("form", name="Join a network")
    form.get_by_label("Address of the first contact").fill("coordinator")
    form.get_by_label("Address of the first contact").press("Enter")
    expect(form).to_contain_text("BAD_FIRST_CONTACT")
    expect(form.get_by_label("Address of the first contact")).to_have_value("coordinator")
    form.get_by_role("button", name="Cancel").click()
    join(desk, coordinator)
    network = desk.host.call("get_network")
    expect(desk.element.locator(".wb-own-node")).to_contain_text(network["rid"])
    graph = desk.element.get_by_role("listbox", name=re.compile("Nodes of the network"))
    expect(graph.get_by_role("option", name="coordinator")).to_contain_text("Answered")
    graph.focus()
    for key in ("Home", "ArrowRight", "Enter"):
        graph.press(key)
    pane = desk.element.get_by_role("region", name=re.compile("^coordinator·"))
    expect(pane.get_by_role("heading", name="coordinator")).to_be_focused()
    pane.get_by_role("button", name="Block…").click()
    pane.get_by_role("button", name="Block coordinator").click()
    expect(pane).to_contain_text("Blocked by operator")
    expect(graph.get_by_role("option", name="coordinator")).to_contain_text("Blocked")
    desk.element.get_by_role("button", name="Table").click()
    expect(desk.element.get_by_role("row").filter(has_text="coordinator")).to_contain_text("Blocked")
    pane.get_by_role("button", name="Unblock").click()
    answered = re.compile(r"Answered (.+ ago|just now)")
    expect(desk.element.get_by_role("row").filter(has_text="coordinator")).to_contain_text(answered)
    pane.get_by_role("heading", name="coordinator").press("Escape")
    expect(desk.element.get_by_role("button", name=re.compile("^coordinator·"))).to_be_focused()
    desk.element.get_by_role("button", name="Leave…").click()
    desk.element.get_by_role("button", name="Leave the network").click()
    expect(desk.element.get_by_role("button", name="Join a network…")).to_be_visible()
    assert not desk.host.call("get_network")["joined"]


def test_a_first_contact_that_is_not_there_and_what_was_refused_are_shown_with_what_the_words_mean(
    desk: BareDesk,
) -> None:
    desk.element.get_by_role("button", name="Join a network…").click()
    form = desk.element.get_by_role("form", name="Join a network")
    form.get_by_label("Address of the first contact").fill("http://127.0.0.1:9/koi-net")
    form.get_by_label("RID of the first contact").fill("orn:koi-net.node:hub+" + "a" * 64)
    form.get_by_role("button", name="Join").click()
    expect(desk.element).to_contain_text("Joined, but not let in by the first contact yet")
    expect(desk.element).to_contain_text("http://127.0.0.1:9/koi-net/events/broadcast cannot be reached")
    assert desk.host.info is not None
    httpx2.post(f"{desk.host.info.url}/koi-net/events/broadcast", content=b"{}", trust_env=False)
    desk.element.get_by_role("button", name="1 from other nodes").click()
    refused = desk.element.get_by_role("region", name="Refused")
    expect(refused).to_contain_text("Senders that are not known here")
    expect(refused).to_contain_text("KOI_MALFORMED × 1")
    desk.element.get_by_text("What the words mean").click()
    expect(desk.element).to_contain_text("First contact: The node that a project asks first.")
    shot(desk.element, "network-refused")


def test_the_page_of_a_peer_distinguishes_rejected_events_from_failed_ones(desk: BareDesk, tmp_path: Path) -> None:
    desk.host.call("join_network", name="lab")
    assert desk.host.workbench is not None
    desk.host.wait(reject(desk.host.workbench, tmp_path / "picky.pem"))
    desk.element.get_by_role("option", name="picky").click()
    pane = desk.element.get_by_role("region", name=re.compile("^picky·"))
    odd, large = (pane.get_by_role("listitem").filter(has_text=f"personality:{name}/1.0") for name in ("odd", "large"))
    expect(odd).to_contain_text("Rejected for good: it is not sent again as it is. Change what is published")
    expect(odd).to_contain_text("KOI_REFUSED It refused the request: invalid_signature.")
    expect(large).to_contain_text("The node failed with it: it is sent again when both nodes are compared.")


def test_another_node_with_the_same_key_is_said_with_its_address(desk: BareDesk) -> None:
    desk.host.call("join_network", name="lab")
    assert desk.host.workbench is not None
    presence = desk.host.workbench._ctx.node.presence
    assert presence is not None
    presence.same_key = "http://127.0.0.1:9/koi-net"
    own = desk.element.locator(".wb-facts").filter(has_text="Problem")
    expect(own).to_contain_text("Another node uses the key of this one, at http://127.0.0.1:9/koi-net")
    presence.same_key = None
    expect(own).to_be_hidden()


def test_a_personality_published_at_another_node_appears_here(desk: BareDesk, coordinator: KernelHost) -> None:
    join(desk, coordinator)
    desk.element.get_by_role("button", name="Personalities", exact=True).click()
    coordinator.call("publish_personality", name="penguin-counter", traits={"mood": "curious"})
    found = desk.element.get_by_role("listitem", name="penguin-counter", exact=True)
    expect(found).to_contain_text("moodcurious")
    expect(found).to_contain_text("coordinator")
    coordinator.call("withdraw_personality", name="penguin-counter")
    expect(found).to_be_hidden()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    made = ThreadPoolExecutor(2)
    yield made
    made.shutdown(wait=False, cancel_futures=True)


def answer(host: KernelHost, value: Any) -> None:
    """Wait for the next call of a function and run it, as its kernel does."""
    while not (calls := host.call("take_tool_calls", host_id="k", wait_seconds=30)["calls"]):
        pass
    host.call("finish_tool_call", host_id="k", call_id=calls[0]["call_id"], answer={"value": value})


def offer(host: KernelHost, to: KernelHost, threads: ThreadPoolExecutor) -> Future[None]:
    """Offer a function of a kernel as a trait, and wait until the other node knows it; done with its first call.

    A kernel that does not wait for calls is forgotten after some seconds.
    """
    host.call("offer_tools", host_id="k", name="kernel 1", tools=[MEAN])
    answered = threads.submit(answer, host, 2.0)
    wait_until(lambda: "ada__mean" in str(to.call("list_tools")), "the other node knows the trait")
    return answered


def test_a_call_from_another_node_asks_in_the_inbox_and_its_permission_is_changed_there(
    desk: BareDesk, coordinator: KernelHost, threads: ThreadPoolExecutor
) -> None:
    join(desk, coordinator)
    answered = offer(desk.host, coordinator, threads)
    call = threads.submit(coordinator.call, "call_tool", name="ada__mean", arguments={"values": [1, 3]})
    desk.element.get_by_role("tab", name=re.compile("^Inbox")).click()
    card = desk.element.get_by_role("listitem", name="ada__mean", exact=True)
    expect(card).to_contain_text("called by the node coordinator·")
    expect(card).to_contain_text('"values": [')
    card.get_by_role("button", name="Always allow this node: ada__mean").click()
    expect(card).to_contain_text("for this node from now on without asking you")
    answered.result(30)
    assert call.result(30)["result"] == "2.0"
    desk.element.get_by_role("tab", name=re.compile("^Personalities")).click()
    desk.element.get_by_role("option", name="coordinator").click()
    pane = desk.element.get_by_role("region", name=re.compile("^coordinator·"))
    chosen = pane.get_by_role("group", name="Permission to call ada__mean")
    expect(chosen.get_by_role("button", name="Always")).to_have_attribute("aria-pressed", "true")
    pane.get_by_label("Calls of ada__mean a minute").fill("7")
    pane.get_by_label("Calls of ada__mean a minute").press("Enter")
    expect(desk.element.get_by_role("status")).to_contain_text("ada__mean: always.")
    chosen.get_by_role("button", name="Never").click()
    expect(chosen.get_by_role("button", name="Never")).to_have_attribute("aria-pressed", "true")
    [rule] = desk.host.call("get_peer", peer="coordinator")["permissions"]
    assert (rule["trait"], rule["permission"], rule["calls_per_minute"]) == ("ada__mean", "never", 7)
    chosen.get_by_role("button", name="As others").click()
    expect(pane.get_by_label("Calls of ada__mean a minute")).to_be_hidden()


def test_a_tool_of_another_node_is_tried_on_its_page(
    desk: BareDesk, coordinator: KernelHost, threads: ThreadPoolExecutor
) -> None:
    join(desk, coordinator)
    answered = offer(coordinator, desk.host, threads)
    coordinator.call("set_peer_permission", peer="lab", permission="always")
    desk.element.get_by_role("button", name="Personalities", exact=True).click()
    desk.element.get_by_role("button", name="ada", exact=True).click()
    page = desk.element.get_by_role("region", name="ada", exact=True)
    page.get_by_role("button", name="mean", exact=True).click()
    form = page.get_by_role("form", name="Try ada__mean")
    form.get_by_label("values (optional)").fill("[1, 3]")
    form.get_by_role("button", name="Run").click()
    answered.result(30)
    expect(form).to_contain_text("Done after")
    expect(form).to_contain_text("2.0")
