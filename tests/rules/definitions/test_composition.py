"""What of a definition is in the prompt, and what is offered with it."""

from __future__ import annotations

from workbench.rules.definitions.composition import offer, system_prompt
from workbench.rules.definitions.model import Definition, Entry, Include, Metadata


def entry(name: str, include: Include = Include.AGENT, description: str = "") -> Entry:
    return Entry(name=name, include=include, description=description, text=f"Text of {name}.")


REVIEWER = Definition(
    metadata=Metadata(id="r1", name="Reviewer"),
    prompt="Read.",
    rules=[entry("tests", description="When there are tests"), entry("style"), entry("always", Include.ALWAYS)],
    references=[entry("paper"), entry("by-hand", Include.MANUAL)],
)
OFFERED = """# More on request

Read these with get_rule and get_reference when they apply:

"""


def test_what_an_agent_reads_on_request_is_offered_by_name() -> None:
    lines = ["- rule `style`", "- rule `tests`: When there are tests", "- reference `paper`"]
    assert offer(REVIEWER) == OFFERED + "\n".join(lines)
    assert offer(REVIEWER, ["style", "paper"]) == OFFERED + lines[1]
    assert offer(REVIEWER, ["style", "paper", "tests"]) == ""
    assert offer(Definition(metadata=REVIEWER.metadata)) == ""


def test_an_offer_is_the_end_of_the_prompt_if_it_is_wanted() -> None:
    without = system_prompt(REVIEWER, ["style", "by-hand"], offers=False)
    assert without.startswith("Read.\n\n# Rules\n\n")
    positions = [
        without.index(text) for text in ("Text of always.", "Text of style.", "# References", "Text of by-hand.")
    ]
    assert positions == sorted(positions)
    assert "Text of tests." not in without
    assert "Text of paper." not in without
    assert system_prompt(REVIEWER, ["style", "by-hand"], offers=True) == f"{without}\n\n{offer(REVIEWER, ['style'])}"
