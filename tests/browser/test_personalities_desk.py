"""Personalities in the panel: found, read and compared there."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Locator, expect
from rid_lib.types import KoiNetNode

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import card, shot, view
from tests.services.personalities.known import ALICE, COORDINATOR, know, meet, own, profile
from workbench.koi.identity import load_or_create
from workbench.rules.personalities.addresses import node_label
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.services.personalities.self_node import key_file

COUNT = {"is_callable": True, "description": "Count the penguins on a picture."}


@pytest.fixture
def desk(desk: BareDesk) -> BareDesk:
    view(desk.element, "Personalities")
    return desk


def receive(desk: BareDesk, *profiles: PersonalityProfile) -> None:
    """Store profiles as if the coordinator had sent them, each later than the one before."""
    workbench = desk.host.workbench
    assert workbench is not None
    for made in profiles:
        now = workbench.store.now()
        desk.host.wait(know(workbench, made, now, origin=COORDINATOR))


def open_personality(desk: BareDesk, name: str) -> Locator:
    """The page of a personality, after a click on its card."""
    card(desk.element, name).get_by_role("button", name=name, exact=True).click()
    return desk.element.get_by_role("region", name=name, exact=True)


def test_a_received_personality_appears_as_a_card_and_is_updated_there(desk: BareDesk) -> None:
    expect(desk.element).to_contain_text("A personality is what an agent publishes about itself")
    receive(desk, profile("penguin-counter", "1.0", description="Counts", mood="calm", count=COUNT))
    found = card(desk.element, "penguin-counter")
    expect(found).to_contain_text("Counts")
    expect(found).to_contain_text("moodcalm")
    expect(found).to_contain_text("Count the penguins on a picture.")
    expect(found).to_contain_text("through coordinator")
    receive(desk, profile("penguin-counter", "1.1", mood="curious"))
    expect(found).to_contain_text("moodcurious")
    expect(found).to_contain_text("2 versions")


def test_the_page_redraws_only_the_changed_cards_of_a_thousand_personalities(desk: BareDesk) -> None:
    receive(desk, *(profile(f"agent-{at:03}", mood="calm") for at in range(1_000)))
    expect(desk.element).to_contain_text("1,000 personalities")
    expect(card(desk.element, "agent-007")).to_contain_text("moodcalm")
    desk.page.evaluate(
        """() => {
          window.drawn = new Set();
          const note = (changes) => changes.forEach(({ target }) => {
            const card = target.parentElement?.closest(".wb-personality");
            if (!target.closest(".wb-label")) window.drawn.add(card?.querySelector(".wb-opener").textContent);
          });
          const list = document.querySelector(".wb-personalities");
          new MutationObserver(note).observe(list, { childList: true, subtree: true });
        }"""
    )
    before = len(desk.sent)
    receive(desk, *(profile(f"agent-{at % 10:03}", "1.1", mood=f"changed {at}") for at in range(50)))
    for at in range(10):
        expect(card(desk.element, f"agent-{at:03}")).to_contain_text(f"moodchanged {40 + at}")
    assert desk.page.evaluate("[...window.drawn].sort()") == [f"agent-{at:03}" for at in range(10)]
    tables = [json.loads(text) for content, text in desk.sent[before:] if content["kind"] == "diff"]
    rows = [row["id"] for table in tables for row in table.get("personalities", {"set": []})["set"]]
    assert set(rows) == {f"agent-{at:03}" for at in range(10)}


def test_own_personalities_come_first_and_words_and_filters_find_others(desk: BareDesk) -> None:
    me = load_or_create(key_file(desk.host.workbench.settings), "me").rid  # type: ignore[union-attr]
    receive(desk, *(profile(f"agent-{at}", mood=f"mood {at}") for at in range(7)), profile("zoe", node=me))
    names = desk.element.locator(".wb-personalities .wb-opener")
    expect(names).to_have_count(8)
    expect(names.first).to_have_text("zoe")
    desk.element.get_by_role("searchbox", name="Filter personalities").fill("mood 3")
    expect(names).to_have_text(["agent-3"])
    desk.element.get_by_role("searchbox", name="Filter personalities").fill("nothing like it")
    desk.element.get_by_role("button", name="Show all").press("Enter")
    desk.element.get_by_role("button", name="Yours").click()
    expect(names).to_have_text(["zoe"])


def test_the_page_of_a_personality_shows_its_origin_and_the_changes_of_versions(desk: BareDesk) -> None:
    newer = profile("counter", "1.1", mood="curious", count=COUNT)
    receive(desk, profile("counter", "1.0", mood="calm", notes="x" * 9_000), newer)
    page = open_personality(desk, "counter")
    expect(page.get_by_role("heading", name="counter", exact=True)).to_be_focused()
    expect(page).to_contain_text(str(ALICE))
    expect(page).to_contain_text(str(COORDINATOR))
    page.get_by_role("button", name="Changes: Published 1.1").click()
    expect(page.locator(".wb-changes")).to_contain_text("mood: value")
    expect(page.locator(".wb-changes")).to_contain_text("removed: calm")
    page.get_by_label("Version", exact=True).select_option("1.0")
    expect(page.locator(".wb-trait-list")).to_contain_text("calm")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".wb-changes")).to_have_count(2)
    page.get_by_role("button", name="Show all 9,000 characters").last.click()
    expect(page.locator(".wb-changes").last).to_contain_text("x" * 9_000)
    page.get_by_role("heading", name="counter", exact=True).press("Escape")
    expect(card(desk.element, "counter").get_by_role("button", name="counter", exact=True)).to_be_focused()


def test_the_page_of_a_personality_shows_schemas_and_stays_during_failed_reads(desk: BareDesk) -> None:
    takes = COUNT | {"input_schema": {"type": "object", "properties": {"picture": {"type": "string"}}}}
    receive(desk, profile("counter", mood="calm", count=takes, other=COUNT))
    page = open_personality(desk, "counter")
    page.get_by_role("button", name="count", exact=True).click()
    expect(page).to_contain_text('"picture"')
    page.get_by_role("button", name="other", exact=True).press("Enter")
    expect(page).to_contain_text("it takes any object.")
    expect(page).to_contain_text("calm")
    desk.fail("get_personality")
    receive(desk, profile("counter", "1.1", mood="curious"))
    expect(page.get_by_text("The store is busy. Try again.")).to_be_visible()
    expect(page).to_contain_text("calm")
    desk.restore()
    expect(page.locator(".wb-trait-list")).to_contain_text("curious")
    expect(page.get_by_text("The store is busy. Try again.")).to_be_hidden()


def test_a_name_is_taken_from_its_owner_and_given_to_another_node(desk: BareDesk) -> None:
    workbench = desk.host.workbench
    assert workbench is not None
    heir = KoiNetNode("alice-again", "b" * 64)
    for node in (ALICE, heir):
        desk.host.wait(meet(workbench, node))
    receive(desk, profile("counter", mood="calm"))
    desk.host.wait(own(workbench, "counter", ALICE))
    page = open_personality(desk, "counter")
    page.get_by_role("button", name="Release name…").click()
    expect(page).to_contain_text(f"{node_label(str(ALICE))} loses the name counter in this project")
    choice = page.get_by_label("Who gets the name counter")
    expect(choice).to_be_focused()
    expect(choice.get_by_role("option")).to_have_text(["Whoever publishes it next", "alice-again·bbbbbb"])
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Release name…")).to_be_focused()
    page.get_by_role("button", name="Release name…").click()
    choice.select_option(label="alice-again·bbbbbb")
    shot(page, "release")
    page.get_by_role("button", name="Release counter").click()
    expect(card(desk.element, "counter")).to_be_hidden()
    expect(desk.element).to_contain_text("counter belongs to alice-again·bbbbbb now.")
    [event] = [event for event in desk.host.call("list_events", after=0)["events"] if event["kind"] == "name.released"]
    assert (event["data"]["former_owner"], event["data"]["owner"]) == (str(ALICE), str(heir))


def test_an_own_personality_is_published_edited_and_withdrawn(desk: BareDesk) -> None:
    desk.host.call("register", name="Careful Ada", persona_id="implementer")
    [waiting] = desk.host.call("list_approvals")["approvals"]
    desk.host.call("approve", approval_id=waiting["id"])
    desk.element.get_by_role("button", name="Publish…").click()
    form = desk.element.get_by_role("form", name="Publish a personality")
    form.get_by_label("Made from").select_option(label="Careful Ada")
    expect(form.get_by_label("Name")).to_have_value("careful-ada")
    form.get_by_role("button", name="Publish").click()
    page = desk.element.get_by_role("region", name="careful-ada", exact=True)
    expect(page).to_contain_text("not published yet")
    expect(page).to_contain_text("Implementer")
    page.get_by_role("button", name="Edit…").click()
    traits = page.get_by_role("form", name="Traits of careful-ada")
    traits.get_by_label("Name of the trait").fill("patience")
    traits.get_by_label("Type of the trait").select_option(label="Whole number")
    traits.get_by_label("Value of the new trait").fill("a lot")
    traits.get_by_role("button", name="Save").click()
    expect(traits).to_contain_text("Type a whole number.")
    expect(traits.get_by_label("Value of the new trait")).to_be_focused()
    traits.get_by_label("Value of the new trait").fill("3")
    traits.get_by_role("button", name="Add a trait").click()
    traits.get_by_label("Name of the trait").last.fill("languages")
    traits.get_by_label("Type of the trait").last.select_option(label="List (JSON)")
    traits.get_by_label("Value of the new trait").last.fill('["R"]')
    traits.get_by_role("button", name="Save").click()
    expect(page.locator(".wb-trait-list")).to_contain_text("patience3")
    own = desk.host.call("get_own_personality", name="careful-ada")
    values = {trait["name"]: (trait["type"], trait["value"]) for trait in own["traits"]}
    assert (values["patience"], values["languages"]) == (("int", 3), ("list", ["R"]))
    page.get_by_role("button", name="Edit…").click()
    traits.get_by_role("button", name="Remove patience").click()
    traits.get_by_role("button", name="Save").click()
    expect(page.locator(".wb-trait-list")).not_to_contain_text("patience")
    page.get_by_role("button", name="Withdraw…").click()
    page.get_by_role("button", name="Withdraw careful-ada").click()
    expect(card(desk.element, "careful-ada")).to_be_hidden()
    expect(desk.element).to_contain_text("A personality is what an agent publishes about itself")
