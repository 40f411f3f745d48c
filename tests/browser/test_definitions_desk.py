"""Definitions in the panel: created, read, changed and deleted there, while editors and agents change them too."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import shot, view, wait_until

REVIEWER = "./agents/reviewer"


@pytest.fixture
def desk(desk: BareDesk) -> BareDesk:
    """The desk of a project with one definition."""
    desk.host.call("agent_create", agentPath=REVIEWER, name="Reviewer", initialPrompt="You review changes.")
    view(desk.element, "Definitions")
    expect(desk.element.get_by_text("1 definition", exact=True)).to_be_visible()
    return desk


def directory(desk: BareDesk, name: str = "reviewer") -> Path:
    return Path(desk.host.settings.project) / ".aiswarm" / "agents" / name


def open_definition(desk: BareDesk, name: str = "Reviewer") -> Locator:
    """The pane of a definition, after a click on its name."""
    desk.element.get_by_role("button", name=name, exact=True).click()
    return desk.element.get_by_role("region", name=name, exact=True)


def place(desk: BareDesk, name: str) -> None:
    desk.element.locator(".wb-places").get_by_role("button", name=re.compile(f"^{name}")).click()


def rule(desk: BareDesk, name: str, **fields: object) -> None:
    desk.host.call("agent_add_rule", agentTarget=REVIEWER, rule={"name": name, "text": f"Text of {name}.", **fields})


@pytest.fixture
def pane(desk: BareDesk) -> Locator:
    """The pane of the definition, with its rule `tests` open."""
    rule(desk, "tests", include="always")
    pane = open_definition(desk)
    place(desk, "tests")
    return pane


def test_a_definition_is_created_and_given_a_rule_that_the_preview_shows(desk: BareDesk) -> None:
    desk.element.get_by_role("button", name="New definition…").click()
    form = desk.element.get_by_role("form", name="New definition")
    form.get_by_label("Name").fill("Été analyst 2")
    expect(form.get_by_label("Directory")).to_have_value("./agents/ete-analyst-2")
    form.get_by_role("button", name="Create").click()
    pane = desk.element.get_by_role("region", name="Été analyst 2", exact=True)
    expect(pane.get_by_label("Version")).to_have_value("1.0.0")
    place(desk, "Rules")
    pane.get_by_role("button", name="New rule…").click()
    expect(pane.get_by_label("Name")).to_be_focused()
    pane.get_by_label("Name").fill("be-polite")
    pane.get_by_label("Text").fill("Always use polite language.")
    pane.get_by_label("Text").press("Control+Enter")
    expect(pane.get_by_role("form", name="rule be-polite")).to_be_visible()
    place(desk, "Preview")
    expect(pane.locator(".wb-pre")).to_contain_text("## be-polite\n\nAlways use polite language.")
    written = (directory(desk, "ete-analyst-2") / "rules" / "be-polite.md").read_text()
    assert "include: always" in written
    assert written.endswith("Always use polite language.\n")


def test_a_change_made_in_an_editor_is_shown_and_unsaved_input_stays(desk: BareDesk, pane: Locator) -> None:
    pane.get_by_label("Description").fill("Mine, not saved yet")
    file = directory(desk) / "rules" / "tests.md"
    file.write_text(file.read_text().replace("Text of tests.", "Run them all."))
    expect(pane.get_by_label("Text")).to_have_value("Run them all.")
    expect(pane.get_by_label("Description")).to_have_value("Mine, not saved yet")
    expect(pane.get_by_text("It was changed elsewhere")).to_be_hidden()
    changed = file.read_text().replace("---\n", "---\ndescription: Theirs\n", 1)
    file.write_text(re.sub("\ndescription: ''\n|\ndescription: \"\"\n", "\n", changed))
    expect(pane.get_by_text("It was changed elsewhere")).to_be_visible()
    expect(pane.get_by_label("Description")).to_have_value("Mine, not saved yet")
    pane.get_by_role("button", name="Discard changes").click()
    expect(pane.get_by_label("Description")).to_have_value("Theirs")


TYPE_SAVE_TYPE = """(area) => {
  const type = (text) => { area.value = text; area.dispatchEvent(new Event("input", { bubbles: true })); };
  type("What is saved.");
  area.form.requestSubmit();
  type("What is typed before the answer comes.");
}"""


def test_input_typed_during_a_save_stays_an_unsaved_change(desk: BareDesk, pane: Locator) -> None:
    text = pane.get_by_label("Text")
    text.evaluate(TYPE_SAVE_TYPE)
    file = directory(desk) / "rules" / "tests.md"
    expect(pane.get_by_role("button", name="Save")).to_be_enabled()
    expect(desk.element.locator(".wb-places")).to_contain_text("unsaved")
    expect(text).to_have_value("What is typed before the answer comes.")
    wait_until(lambda: desk.page.evaluate("true") and "What is saved." in file.read_text(), "the first text is saved")
    pane.get_by_role("button", name="Save").click()
    expect(desk.element.locator(".wb-places")).not_to_contain_text("unsaved")
    assert "What is typed before the answer comes." in file.read_text()


def test_a_cleared_setting_shows_the_default_of_the_provider(desk: BareDesk, pane: Locator) -> None:
    place(desk, "Overview")
    temperature = pane.get_by_label("Temperature")
    expect(temperature).to_have_attribute("placeholder", "The provider's own")

    def stored() -> object:
        return desk.host.call("agent_get_settings", agentTarget=REVIEWER)["settings"]["temperature"]

    for text, value in (("0.5", 0.5), ("", None)):
        temperature.fill(text)
        pane.get_by_role("form", name="Settings").get_by_role("button", name="Save").click()
        wait_until(lambda value=value: desk.page.evaluate("true") and stored() == value, f"it is {value}")
        expect(temperature).to_have_value(text)


def test_the_limits_of_the_program_and_of_servers_are_shown_and_set(desk: BareDesk, pane: Locator) -> None:
    place(desk, "Overview")
    pane.get_by_label("Tools of its program: only these").fill("Read, Bash(git diff:*)")
    pane.get_by_label("Tools of its program: not these").fill("WebSearch")
    pane.get_by_label("Permission mode of its program").select_option("plan")
    save = pane.get_by_role("form", name="Settings").get_by_role("button", name="Save")

    def expect_stored(allowed: list[str] | None, refused: list[str] | None, mode: str | None) -> None:
        def is_stored() -> bool:
            settings = desk.host.call("agent_get_settings", agentTarget=REVIEWER)["settings"]
            shown = [settings[key] for key in ("allowedTools", "disallowedTools", "permissionMode")]
            return bool(desk.page.evaluate("true")) and shown == [allowed, refused, mode]

        wait_until(is_stored, f"the limits are {allowed}, {refused}, {mode}")

    save.click()
    expect_stored(["Read", "Bash(git diff:*)"], ["WebSearch"], "plan")
    info = desk.host.call("agent_get_info", agentTarget=REVIEWER)
    expect(pane).to_contain_text(info["contentHash"])  # the panel has read all of it
    shot(desk.element, "definition-limits")
    pane.get_by_label("Tools of its program: only these").fill("none")
    pane.get_by_label("Tools of its program: not these").fill("")
    pane.get_by_label("Permission mode of its program").select_option("")
    save.click()
    expect_stored([], None, None)
    expect(pane.get_by_label("Tools of its program: only these")).to_have_value("none")
    rules = {"search": {"include": "agent"}, "delete": {"permissionRequired": True}}
    config = {"command": "npx", "serverToolDefaults": {"include": "manual"}, "tools": rules}
    desk.host.call("agent_add_mcp_server", agentTarget=REVIEWER, serverName="github", config=config)
    place(desk, "MCP servers")
    expect(pane.get_by_role("listitem")).to_contain_text("only search; asks before delete")
    shot(desk.element, "definition-servers")


def test_unsaved_values_are_kept_while_other_sections_are_open(desk: BareDesk, pane: Locator) -> None:
    pane.get_by_label("Text").fill("Half a sen")
    place(desk, "Preview")
    expect(desk.element.locator(".wb-places").get_by_role("button", name="tests")).to_contain_text("unsaved")
    pane.get_by_role("button", name="Close the definition").click()
    expect(desk.element.locator(".wb-definitions")).to_contain_text("unsaved")
    pane = open_definition(desk)
    place(desk, "tests")
    expect(pane.get_by_label("Text")).to_have_value("Half a sen")
    pane.get_by_label("Text").fill("A whole sentence.")
    pane.get_by_role("button", name="Save").click()
    expect(desk.element.locator(".wb-places")).not_to_contain_text("unsaved")
    assert "A whole sentence." in (directory(desk) / "rules" / "tests.md").read_text()


def test_a_rule_whose_value_was_refused_is_renamed_and_deleted_after_a_second_question(
    desk: BareDesk, pane: Locator
) -> None:
    before = (directory(desk) / "rules" / "tests.md").read_text()
    pane.get_by_label("Name").fill("no blanks")
    pane.get_by_role("button", name="Save").click()
    expect(pane.locator(".wb-error:visible")).to_contain_text("VALIDATION_ERROR")
    expect(pane.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    expect(pane.get_by_label("Name")).to_be_focused()
    assert (directory(desk) / "rules" / "tests.md").read_text() == before
    pane.get_by_label("Name").fill("run-tests")
    pane.get_by_role("button", name="Save").click()
    expect(pane.get_by_role("form", name="rule run-tests")).to_be_visible()
    assert [path.name for path in (directory(desk) / "rules").iterdir()] == ["run-tests.md"]
    pane.get_by_role("button", name="Delete rule… run-tests").click()
    pane.get_by_role("button", name="Delete run-tests").click()
    expect(pane.get_by_text("No rules yet.")).to_be_visible()
    expect(pane.get_by_role("button", name="New rule…")).to_be_focused()
    assert list((directory(desk) / "rules").iterdir()) == []


def test_a_definition_is_copied_and_the_original_deleted_without_foreign_files(desk: BareDesk) -> None:
    (directory(desk) / "notes.txt").write_text("mine")
    pane = open_definition(desk)
    pane.get_by_role("button", name="Copy…").click()
    form = desk.element.get_by_role("form", name="New definition")
    expect(form.get_by_label("Directory")).to_have_value("./agents/reviewer-copy")
    form.get_by_role("button", name="Create").click()
    expect(desk.element.get_by_role("region", name="Reviewer copy")).to_be_visible()
    pane = open_definition(desk)
    pane.get_by_role("button", name="Delete…", exact=True).click()
    pane.get_by_role("button", name="Delete Reviewer").click()
    expect(desk.element.get_by_role("button", name="Reviewer", exact=True)).to_be_hidden()
    expect(desk.element.get_by_role("status")).to_contain_text("notes.txt")
    expect(desk.element.get_by_role("button", name="New definition…")).to_be_focused()
    assert [path.name for path in directory(desk).iterdir()] == ["notes.txt"]
    assert (directory(desk, "reviewer-copy") / "prompt.md").read_text() == "You review changes.\n"


def test_a_definition_that_cannot_be_read_says_why_until_it_can(brisk: None, desk: BareDesk) -> None:
    (broken := directory(desk, "broken")).mkdir()
    (broken / "agent.yaml").write_text("metadata: [1\n")
    expect(desk.element.get_by_text("./agents/broken: agent.yaml, line 2")).to_be_visible(timeout=40_000)
    (broken / "agent.yaml").unlink()
    expect(desk.element.get_by_text("./agents/broken")).to_be_hidden(timeout=40_000)


def test_a_written_secret_never_reaches_the_page_and_survives_a_change(
    desk: BareDesk,
) -> None:
    config = {"AWS_ACCESS_KEY_ID": "env://KEY", "AWS_SECRET_ACCESS_KEY": "very-secret", "AWS_REGION": "eu-central-1"}
    desk.host.call("agent_install_provider", agentTarget=REVIEWER, providerType="bedrock", config=config)
    pane = open_definition(desk)
    place(desk, "bedrock")
    expect(pane.get_by_label("Access key id")).to_have_value("env://KEY")
    expect(pane.get_by_label("Secret access key")).to_have_value("••••••")
    expect(pane).to_contain_text("•••••• is a key that is written in agent.yaml; it is not shown.")
    pane.get_by_label("Region").fill("eu-west-1")
    pane.get_by_role("button", name="Save").click()
    expect(pane.get_by_role("button", name="Discard changes")).to_be_hidden()
    written = (directory(desk) / "agent.yaml").read_text()
    assert "very-secret" in written
    assert "eu-west-1" in written
    assert "very-secret" not in desk.page.content()
    assert "very-secret" not in json.dumps(desk.sent)
    openai = {"OPENAI_API_KEY": "sk-very-secret", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    desk.host.call("agent_install_provider", agentTarget=REVIEWER, providerType="openai", config=openai)
    place(desk, "openai")
    pane.get_by_label("Address").fill("http://127.0.0.1:10/v1")
    pane.get_by_role("button", name="Save").click()
    expect(pane.get_by_label("API key")).to_have_attribute("aria-invalid", "true")
    pane.get_by_label("API key").fill("env://OPENAI_API_KEY")
    pane.get_by_role("button", name="Save").click()
    expect(pane.get_by_role("button", name="Discard changes")).to_be_hidden()
    assert "sk-very-secret" not in (directory(desk) / "agent.yaml").read_text()


SERVER = """\
mcpServers:
  github:
    command: npx
    args: [-y, mcp github]
    env: {GITHUB_TOKEN: "env://GITHUB_TOKEN"}
"""


def test_a_server_added_in_an_editor_is_trusted_after_its_command_is_shown(desk: BareDesk) -> None:
    with (directory(desk) / "agent.yaml").open("a") as file:
        file.write(SERVER)
    pane = open_definition(desk)
    expect(pane.get_by_text("You have not trusted mcpServers.github.")).to_be_visible()
    pane.get_by_role("button", name="Review…").click()
    question = pane.get_by_role("listitem", name="Reviewer", exact=True)
    expect(question).to_contain_text('npx -y "mcp github"')
    expect(question).to_contain_text("GITHUB_TOKEN=env://GITHUB_TOKEN")
    view(desk.element, "Inbox")
    inbox = desk.element.get_by_role("tabpanel", name=re.compile("^Inbox"))
    expect(inbox.get_by_role("listitem", name="Reviewer", exact=True)).to_contain_text('npx -y "mcp github"')
    view(desk.element, "Definitions")
    question.get_by_role("button", name="Trust: Reviewer").click()
    expect(question).to_contain_text("Trusted. Reviewer can be used now.")
    expect(pane.get_by_text("You have not trusted mcp")).to_be_hidden()
    assert desk.host.call("agent_get_trust", agentTarget=REVIEWER)["trusted"]
    file_path = directory(desk) / "agent.yaml"
    file_path.write_text(file_path.read_text().replace("mcp github", "mcp gitlab"))
    expect(pane.get_by_text("You have not trusted mcpServers.github.")).to_be_visible()


def test_arrow_keys_move_between_definitions(desk: BareDesk) -> None:
    desk.host.call("agent_create", agentPath="./agents/analyst", name="Analyst")
    first, second = (desk.element.get_by_role("button", name=name, exact=True) for name in ("Analyst", "Reviewer"))
    first.press("ArrowDown")
    expect(second).to_be_focused()
    second.press("Enter")
    expect(second).to_have_attribute("aria-expanded", "true")
    desk.element.get_by_role("button", name="Close the definition").press("Enter")
    expect(second).to_be_focused()


def test_an_agent_is_given_a_definition_and_a_planner_the_right_to_manage_them(desk: BareDesk) -> None:
    desk.host.call("register", name="ada", persona_id="implementer")
    view(desk.element, "Inbox")
    card = desk.element.get_by_role("listitem", name="ada", exact=True)
    card.get_by_role("button", name="Details…").click()
    expect(card.get_by_label("Manages definitions")).to_be_hidden()
    expect(card.get_by_label("Its own definition")).to_be_hidden()
    card.get_by_label("Definition", exact=True).select_option("Reviewer")
    card.get_by_label("Its own definition").select_option("May read it")
    card.get_by_role("button", name="Admit").click()
    expect(card).to_contain_text("definition Reviewer (which it can read)")
    approval = desk.host.call("register", name="nox", persona_id="planner")["approval_id"]
    desk.host.call("approve", approval_id=approval)
    view(desk.element, "Agents")
    desk.element.get_by_role("button", name="nox", exact=True).click()
    details = desk.element.locator(".wb-table-details:visible")
    for wanted in ("Yes", "No"):
        details.get_by_label("Manages definitions").select_option(wanted)
        details.get_by_role("button", name="Save changes").click()
        expect(details.locator(".wb-history li").first).to_contain_text(f"→ {wanted.lower()}")
        expect(details.get_by_label("Manages definitions").locator("option:checked")).to_have_text(wanted)


def test_an_agent_is_started_with_a_definition(desk: BareDesk) -> None:
    rule(desk, "careful", include="manual")
    pane = open_definition(desk)
    pane.get_by_role("button", name="Start an agent…").click()
    form = pane.get_by_role("form", name="Start an agent with Reviewer")
    form.get_by_label("Persona").select_option("tester")
    form.get_by_label("careful").check()
    form.get_by_role("button", name="Start", exact=True).click()
    expect(form).to_be_hidden()
    expect(pane).to_contain_text(re.compile(r"Used by\s*Reviewer"))
    (agent,) = desk.host.call("list_agents")["agents"]
    assert (agent["persona_id"], agent["definition"]) == ("tester", "Reviewer")


def test_a_definition_is_created_from_a_template_and_from_a_persona(desk: BareDesk) -> None:
    for source in ("template:analyst", "persona:tester"):
        desk.element.get_by_role("button", name="New definition…").click()
        form = desk.element.get_by_role("form", name="New definition")
        name = source.split(":")[1]
        form.get_by_label("Name").fill(f"My {name}")
        expect(form.locator(f"option[value='{source}']")).to_have_count(1)
        form.get_by_label("Start from").select_option(source)
        expect(form.get_by_label("Mode")).to_be_hidden()
        form.get_by_role("button", name="Create").click()
        pane = desk.element.get_by_role("region", name=f"My {name}", exact=True)
        expect(pane.get_by_label("Version")).to_be_visible()
        place(desk, "Prompt")
        expect(pane.get_by_role("textbox")).not_to_have_value("")


def test_problems_link_to_their_places_and_names_by_agents_are_inert(desk: BareDesk) -> None:
    rule(desk, "tests", include="agent")
    pane = open_definition(desk)
    expect(pane.get_by_role("list", name="Problems")).to_contain_text("The agent chooses it by its description")
    pane.get_by_role("button", name="Open rules.tests").click()
    expect(pane.get_by_label("Name")).to_be_visible()
    pane.get_by_label("Description").fill("When tests fail")
    pane.get_by_role("button", name="Save").click()
    expect(pane.get_by_role("list", name="Problems")).to_be_hidden()
    expect(desk.element.locator(".wb-place-mark:visible")).to_have_count(0)
    text = "<img src=x onerror=alert(1)>\u202eevil"
    desk.host.call("agent_update_metadata", agentTarget=REVIEWER, metadata={"description": text})
    rule(desk, "evil", description=text)
    place(desk, "Rules")
    expect(pane).to_contain_text("<img src=x onerror=alert(1)>\\u202eevil")
    expect(desk.element.locator("img")).to_have_count(0)


def test_a_server_is_added_from_the_lines_of_a_manual_and_the_history_shows_each_change(desk: BareDesk) -> None:
    rule(desk, "tests")
    changes = {"text": "Run all of them."}
    desk.host.call("agent_update_rule", agentTarget=REVIEWER, ruleName="tests", rule=changes)
    pane = open_definition(desk)
    place(desk, "History")
    pane.get_by_role("button", name="Changes: rule tests changed").click()
    expect(pane.get_by_role("table", name="Changes in rules/tests.md")).to_contain_text("Run all of them.")
    desk.host.call("agent_update_rule", agentTarget=REVIEWER, ruleName="tests", rule={"text": "Run none."})
    expect(pane.get_by_role("button", name="Changes: rule tests changed")).to_have_count(2)
    place(desk, "MCP servers")
    pane.get_by_role("button", name="New MCP server…").click()
    pane.get_by_label("Configuration").fill("{")
    pane.get_by_label("Name").fill("github")
    pane.get_by_role("button", name="Add MCP server").click()
    expect(pane.get_by_label("Configuration")).to_have_attribute("aria-invalid", "true")
    server = {"command": "mcp-github", "args": ["--stdio"], "env": {"GITHUB_TOKEN": "env://GITHUB_TOKEN"}}
    pane.get_by_label("Configuration").fill(json.dumps({"mcpServers": {"github": server}}))
    pane.get_by_role("button", name="Add MCP server").click()
    expect(pane.get_by_role("form", name="MCP server github")).to_be_visible()
    found = desk.host.call("agent_get_mcp_server", agentTarget=REVIEWER, serverName="github")["server"]
    assert {name: found[name] for name in server} == server
