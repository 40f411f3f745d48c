"""Plans are exported as text that makes an equal one."""

from __future__ import annotations

import pytest

from workbench.app import Workbench

pytestmark = pytest.mark.anyio


EVERYTHING = """
plan: all
tasks:
  - {name: a, title: A, persona: implementer, session: night, max_retries: 3, priority: 500}
  - {name: b, title: "B {b}", persona: Reviewer, parent: a, after: [a], on_failure: cancel, no_retry: [x.Y, "a, b"],
     due: 2027-01-01}
  - name: c
    title: C
    persona: tester
    parent: b
    worktree: lab
    run: [python, "x y.py"]
    max_retries: 0
    lease_seconds: 0.5
    context_ref: doc
    metadata: {due: "2027-01-01", deep: [{x: 1.5e300}]}
    description: |
      Some lines.

        - [ ] not a task
"""


@pytest.mark.parametrize("form", ["yaml", "markdown"])
async def test_a_plan_is_exported_as_text_that_makes_an_equal_one(workbench: Workbench, form: str) -> None:
    (night,) = (await workbench.call("list_sessions"))["sessions"]
    await workbench.call("create_plan", text=EVERYTHING)
    exported = await workbench.call("export_plan", plan="all", format=form)
    assert (exported["plan"], exported["format"]) == ("all", form)
    assert f"session{'=' if form == 'markdown' else ': '}{night['id']}" in exported["text"]
    assert not (await workbench.call("create_plan", text=exported["text"]))["changed"]
    copy = await workbench.call("create_plan", text=exported["text"], name="copy")
    again = await workbench.call("export_plan", plan="copy", format=form)
    assert again["text"] == exported["text"].replace('"all"', '"copy"').replace("# all", "# copy").replace(
        "plan: all", "plan: copy"
    )
    ids = dict(zip((1, 2, 3), copy["tasks"].values(), strict=True))
    for old, new in ids.items():
        one, other = [await workbench.call("get_task", task_id=n) for n in (old, new)]
        assert other == one | {
            **{"id": new, "plan": "copy", "created_at": other["created_at"]},
            "description": other["description"],
            "parent_task_id": ids.get(one["parent_task_id"]),
            "dependencies": [ids[n] for n in one["dependencies"]],
            "blocked_by": [ids[n] for n in one["blocked_by"]],
        }
        assert other["description"].strip() == one["description"].strip()
