"""A plan that an agent proposes, on its card in the inbox: as a tree, of which a part is approved, with comments."""

from __future__ import annotations

from contextlib import nullcontext

from playwright.sync_api import expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import card, expect_fitting, expect_reachable, expect_readable, resize, shot, view, wearing
from tests.browser.scenes import admitted

SMALL = """\
plan: penguins
budget: 30usd
tasks:
- {name: clean, title: Clean the raw measurements, persona: implementer, worktree: clean, run: python clean.py}
- {name: mass, title: Model mass, persona: implementer, worktree: mass, after: [clean], check: pytest, budget: 5usd}
- {name: fit, title: Fit the mixed model, persona: implementer, worktree: mass, parent: mass}
- {name: sweep, title: Sweep the priors, persona: implementer, worktree: mass, parent: fit}
- {name: bills, title: Compare bill shapes of the three species, persona: implementer, after: [clean]}
- {name: review, title: Review the models, persona: reviewer, after: [mass, bills]}
- {name: report, title: Write the report, persona: implementer, after: [review], on_failure: ignore}
"""


def large(count: int) -> str:
    """A plan of so many tasks, in groups of ten."""
    tasks = [
        f"- {{name: t{n}, title: 'Measure the flippers of colony {n} on every island', persona: implementer, "
        + (f"parent: t{n - n % 10}" if n % 10 else f"worktree: colony-{n // 10}")
        + (f", after: [t{n - 1}]" if n % 10 > 1 else "")
        + "}"
        for n in range(count)
    ]
    return "\n".join(["plan: colonies", "tasks:", *tasks])


def test_a_part_of_a_planners_plan_is_approved_on_its_card(desk: BareDesk) -> None:
    pam, project = admitted(desk.project, "pam", "planner"), desk.project
    project.call("create_plan", pam, text=SMALL)
    view(desk.element, "Inbox")
    asked = card(desk.element, "penguins")
    for part in ("It may spend $30.00, more than $20.00.", "At most $30.00.", "proposed by pam", "python clean.py"):
        expect(asked).to_contain_text(part)
    expect(asked.get_by_role("button", name="Begin 7 tasks: penguins")).to_be_visible()
    asked.get_by_role("checkbox", name="Begin mass").uncheck()
    for name in ("fit", "sweep", "review"):
        expect(asked.get_by_role("checkbox", name=f"Begin {name}")).to_be_disabled()
    expect(asked).to_contain_text("left out with mass")
    asked.get_by_role("button", name="Comment on clean").click()
    asked.get_by_label("Text of the comment on clean").fill("Keep the outliers.")
    asked.get_by_label("Comment for pam").fill("No models yet.")
    asked.get_by_label("Limit in US dollars").fill("4.5")
    for theme, width in (("light", 1200), ("dark", 700)):
        with wearing(desk.page, "dark") if theme == "dark" else nullcontext():
            resize(desk.element, width)
            expect_readable(desk.page)
            expect_fitting(desk.element)
            shot(desk.element, f"plan-{theme}")
    expect_reachable(desk.page)
    asked.get_by_role("button", name="Begin 3 of 7 tasks: penguins").click()
    expect(asked).to_contain_text("3 tasks may begin. Left out: mass, fit, sweep, review.")
    (told,) = project.call("read_messages", pam)["messages"]
    assert "Comment: No models yet.\nOn task clean: Keep the outliers." in told["text"]
    (budget,) = [one for one in project.operate("list_budgets")["budgets"] if one["scope"] == "plan:penguins"]
    assert budget["usd"] == 4.5


def test_a_long_plan_scrolls_in_its_card_and_what_is_added_appears(desk: BareDesk) -> None:
    pam, project = admitted(desk.project, "pam", "planner"), desk.project
    project.call("create_plan", pam, text=large(60))
    view(desk.element, "Inbox")
    asked = card(desk.element, "colonies")
    expect(asked.get_by_role("checkbox")).to_have_count(60)
    shot(desk.element, "plan-long")
    asked.get_by_role("checkbox", name="Begin t10").uncheck()
    project.call("create_plan", pam, text=large(61), update=True)
    expect(asked.get_by_role("checkbox")).to_have_count(61)
    expect(asked.get_by_role("button", name="Begin 51 of 61 tasks: colonies")).to_be_visible()
    asked.get_by_role("button", name="Reject… colonies").click()
    asked.get_by_label("Reason for rejecting colonies").fill("Begin with one colony.")
    asked.get_by_label("Reason for rejecting colonies").press("Enter")
    expect(asked).to_contain_text("Its tasks are cancelled, and its agent is told.")
