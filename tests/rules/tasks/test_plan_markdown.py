"""Plans as Markdown checklists: what is read, what is refused with its line, and what is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from tests.rules.tasks.test_plan import PERSONAS, problems
from workbench.errors import BadInput
from workbench.rules.tasks.plan import PlannedTask, parse, write

TEXT = """\
---
persona: implementer
---
# Penguins, *whole* #

Words for people, which may be of any kind.

- [ ] Clean the table {name=clean priority=900 run="python clean.py" max_retries=2}
- [x] Ask for the data
* [ ] Write it up {after=clean,ask-for-the-data}
  worktree: report
  metadata: {pages: [1, x], "done": false}
  no_retry: ["ValueError", "Out, of it"]
  run: ["python", "up.py"]

  What it is about:

      - [links](https://example.org)

  ```
  # no title
  ```

  <!-- - [ ] No task -->
  + [ ] Überarbeiten {persona=reviewer worktree= on_failure=ignore}
    lease_seconds: 1.5

    In few words.

## Another part

- [X] Go home
"""


def read(text: str, **how: Any) -> dict[str, PlannedTask]:
    """The tasks of a checklist."""
    return {task.name: task for task in parse(text, personas=PERSONAS, **how).tasks}


def items(*lines: str) -> str:
    """A checklist with a title, for implementers, whose first item is line 6."""
    return "\n".join(["---", "persona: implementer", "---", "# p", "", *lines]) + "\n"


def test_a_checklist_is_read_with_all_that_its_items_say() -> None:
    made = parse(TEXT, personas=PERSONAS)
    assert (made.plan, made.worktrees) == ("penguins-whole", ["report"])
    assert [(item.name, item.line) for item in made.ticked] == [("ask-for-the-data", 9), ("go-home", 32)]
    clean, write_up, revise = made.tasks
    assert clean == PlannedTask.model_validate(
        {
            **{"name": "clean", "title": "Clean the table", "persona": "implementer", "priority": 900},
            **{"run": "python clean.py", "max_retries": 2, "\0line": 8},
        }
    )
    assert (write_up.name, write_up.line, write_up.parent, write_up.worktree) == ("write-it-up", 10, None, "report")
    assert write_up.after == ["clean", "ask-for-the-data"]
    assert (write_up.metadata, write_up.run) == ({"pages": [1, "x"], "done": False}, ["python", "up.py"])
    assert write_up.no_retry == ["ValueError", "Out, of it"]
    assert write_up.description == ("What it is about:\n\n    - [links](https://example.org)\n\n```\n# no title\n```")
    assert (revise.name, revise.title, revise.line) == ("uberarbeiten", "Überarbeiten", 25)
    assert (revise.parent, revise.persona, revise.worktree) == ("write-it-up", "reviewer", None)
    assert (revise.on_failure, revise.lease_seconds, revise.description) == ("ignore", 1.5, "In few words.")


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("{run=ls}", "ls"),
        ('{run="ls \\"a b\\" \\\\ {}"}', 'ls "a b" \\ {}'),
        ("{run='ls \"a b\"'}", 'ls "a b"'),
        ("{run=}", None),
        ("\n  run: ls -l {x} # all", "ls -l {x} # all"),
        ('\n  run: "ls"', "ls"),
        ("\n  run: 'ls'", "ls"),
        ("\n  run: 'ls' 'x'", "'ls' 'x'"),
        ('\n  run: "my program" x', '"my program" x'),
        ("\n  run: [ -f x ] && ls", "[ -f x ] && ls"),
        ('\n  run: ["ls", "-l"]', ["ls", "-l"]),
        ('\n  run: "[]"', "[]"),
        ("\n  run:", None),
    ],
)
def test_the_command_of_an_item_is_parsed(said: str, value: Any) -> None:
    assert read(items(f"- [ ] A {said}"))["a"].run == value


@pytest.mark.parametrize("title", ["Use {curly} braces", "Set {a: b}", "{}", "a = {b}", "[link](x)", "`{x=1}` it"])
def test_braces_that_say_nothing_belong_to_the_title(title: str) -> None:
    assert read(items(f"- [ ] {title} {{name=a}}"))["a"].title == title


def test_a_name_is_given_or_derived_from_the_title() -> None:
    made = read(items("- [ ] Do: it, *now*!", "- [ ] Élan vital", "- [ ] Do it", "  name: 1.0"))
    assert list(made) == ["do-it-now", "elan-vital", "1.0"]


def test_a_plan_takes_its_name_from_front_matter_its_title_or_the_caller() -> None:
    assert parse(f"---\nplan: q\n---\n# Title\n{ITEM}").plan == "q"
    assert parse(f"# My first plan\n# Not this\n{ITEM}").plan == "my-first-plan"
    assert parse(ITEM, default_name="mine").plan == "mine"


def test_items_inside_others_are_their_parts_with_any_reasonable_indentation() -> None:
    lines = ("- [ ] A", "  - [ ] B", "    - [ ] C", "  text of A", "", "  - [ ] D", " - [ ] E", "\t- [ ] F", "1. [ ] G")
    made = read(items(*lines))
    parents = {"a": None, "b": "a", "c": "b", "d": "a", "e": None, "f": "e", "g": None}
    assert {name: task.parent for name, task in made.items()} == parents
    assert made["a"].description == "text of A"


def test_in_a_numbered_list_one_comes_after_another_with_all_that_is_inside() -> None:
    made = read(
        items(
            *("1. [ ] A", "   - [ ] A1", "   - [ ] A2 {after=a1}", "2. [x] B", "3. [ ] C {after=a}", "   1) [ ] C1"),
            *("   2) [ ] C2", "- [ ] D", "1. [ ] E", "", "2. [ ] F", "", "Some words.", "", "3. [ ] G"),
        )
    )
    assert {name: task.after for name, task in made.items()} == {
        **{"a": [], "a1": [], "a2": ["a1"]},
        **{"c": ["a", "a1", "a2"], "c1": ["a", "a1", "a2"], "c2": ["a", "a1", "a2", "c1"]},
        **{"d": [], "e": [], "f": ["e"], "g": []},
    }


def test_numbered_lists_stand_for_a_bounded_number_of_dependencies() -> None:
    many = [f"   - [ ] {which}{n}" for which in "ab" for n in range(200)]
    found = problems(items("1. [ ] A", *many[:200], "2. [ ] B", *many[200:]))
    assert found == [(207, "too many tasks one after another; use bullets, and `after=` where order matters")]


def test_the_format_of_a_plan_is_guessed_or_given() -> None:
    yaml = "plan: p\ntasks:\n- {name: a, title: A, persona: reviewer, description: '\n\n  - [ ] b'}\n"
    assert list(read(yaml)) == list(read("# Not a title\n" + yaml)) == list(read(yaml, format="yaml")) == ["a"]
    text = items("- [ ] A", "", "tasks: none of these")
    assert list(read(text, format="markdown")) == ["a"]
    assert "not YAML" in refused("PLAN_INVALID", read, text).message
    assert problems("# Only a title\n")[0][1].endswith("or a Markdown checklist of `- [ ] Do it` items")


ITEM = "- [ ] A {persona=reviewer}\n"
CASES: dict[str, tuple[str, int, str]] = {
    "a box that is none": (items("- [ ] A", "- [] B"), 7, "a task begins with `- [ ] `"),
    "a box with another sign": (items("- [ ] A", "  - [y] B"), 7, "a task begins with `- [ ] `"),
    "a box without a space": (items("- [ ]A", "- [ ] B"), 6, "a task begins with `- [ ] `"),
    "a bullet without a space": (items("-[ ] A", "- [ ] B"), 6, "a task begins with `- [ ] `"),
    "a quoted task": (items("- [ ] A", "", "> > - [ ] B"), 8, "a quoted task is nobody's"),
    "no box": (items("- [ ] A", "- B"), 7, "an item without a box"),
    "a line that may belong to the item or not": (items("- [ ] A", "goes on"), 7, "indent this"),
    "nothing behind the box": (items("- [ ] {name=a}"), 6, "title: must not be empty"),
    "a title that makes no name": (items("- [ ] 一"), 6, "add {name=…}"),
    "two titles alike": (items("- [ ] A", "- [ ] B", "  - [x] a!"), 8, "the name 'a' is taken by line 6"),
    "nobody to do it": ("- [ ] A\n", 1, "persona: required"),
    "an unknown persona": (items("- [ ] A {persona=wizard}"), 6, "unknown persona 'wizard'"),
    "braces that are not understood": (items("- [ ] A {persona=a b}"), 6, "the braces do not contain"),
    "an open quote": (items('- [ ] A {run="ls}'), 6, "the braces do not contain"),
    "a bad escape": (items(r'- [ ] A {run="\d"}'), 6, "run: not a valid JSON string in double quotes"),
    "an unknown key in braces": (items("- [ ] A {prio=3}"), 6, "unknown key 'prio'; the known keys are name, title,"),
    "an unknown key in a line": (items("- [ ] A", "  prio: 3"), 7, "unknown key 'prio'"),
    "the parser's own word for a line": (items("- [ ] A {line=3}"), 6, "unknown key 'line'"),
    "a key twice in braces": (items("- [ ] A {priority=1 priority=2}"), 6, "the key 'priority' is given twice"),
    "a key in braces and a line": (items("- [ ] A {priority=1}", "  priority: 2"), 7, "'priority' is given twice"),
    "a description twice": (items("- [ ] A", "  description: x", "", "  y"), 6, "the description is given twice"),
    "a priority that is a word": (items("- [ ] A {priority=high}"), 6, "priority: must be a whole number"),
    "others that are no list": (
        items("- [ ] A", '  after: "B done"'),
        6,
        "after: must be a list of names, like [first, sec",
    ),
    "an unknown other": (items("- [ ] A {after=z}"), 6, "'a' comes after 'z', which is not in the plan"),
    "a circle": (items("1. [ ] A {after=b}", "2. [ ] B"), 6, "wait for each other: a → b → a"),
    "a part that says where it belongs": (
        items("- [ ] A", "  - [ ] B {parent=a}"),
        7,
        "it is a subtask by its position",
    ),
    "metadata that is a word": (items("- [ ] A", "  metadata: x"), 6, "metadata: must be an object"),
    "metadata that is broken": (items("- [ ] A", "  metadata: {x: [}"), 7, "metadata: not YAML"),
    "metadata beyond numbers": (items("- [ ] A", "  metadata: {x: 1e999}"), 7, "metadata: not YAML: 1e999 is too"),
    "metadata like an abyss": (items("- [ ] A", f"  metadata: {'[' * 9_000}{']' * 9_000}"), 7, "metadata: "),
    "a worktree outside": (items("- [ ] A {worktree=../x}"), 6, "worktree '../x'"),
    "a fence that is open": (items("- [ ] A", "", "  ~~~", "- [ ] B", "```"), 8, "not closed by '~~~'"),
    "a comment that is open": (items("- [ ] A", "<!--", "- [ ] B"), 7, "not closed by '-->'"),
    "front matter that is no mapping": (f"---\nwords\n---\n{ITEM}", 1, "the front matter must be a"),
    "front matter that is broken": (f"---\nplan: x\n: [\n---\n{ITEM}", 3, "not YAML"),
    "an unknown key of the plan": (f"---\n\nowner: me\n---\n{ITEM}", 3, "unknown key 'owner'"),
    "a plan without a proper name": (f"---\nplan: a b\n---\n{ITEM}", 1, "plan: must be letters, digits, dots"),
    "a title that makes no name of the plan": (f"\n# 一\n{ITEM}", 2, "`plan: name`"),
    "a tower": (items(*(f"{'  ' * n}- [ ] n{n}" for n in range(51))), 56, "it has more than 49 tasks above it"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_checklist_is_refused_with_the_line_and_the_reason(case: str) -> None:
    text, line, reason = CASES[case]
    (found,) = problems(text)
    assert reason in found[1]
    assert found[0] == line


def test_an_item_with_a_field_that_is_wrong_is_looked_at_whole() -> None:
    found = problems(items("- [ ] A {priority=high after=z persona=wizard}", "- [ ] B {name=a max_retries=-1}"))
    assert [line for line, _ in found] == [6, 6, 6, 7, 7]
    named = ("priority:", "'z'", "wizard", "max_retries:", "taken by line 6")
    assert [word for word in named if not any(word in reason for _, reason in found)] == []


def test_all_mistakes_are_reported_at_once_in_order_of_their_lines() -> None:
    text = items("- [y] A", "- [ ] B {prio=3 persona=wizard}", "  when: now", "  after: z", "words", "- C")
    assert [line for line, _ in problems(text)] == [6, 7, 7, 7, 8, 10, 11]


def test_an_empty_checklist_is_refused_and_one_that_is_all_done_is_not() -> None:
    message = refused("PLAN_INVALID", parse, "# Nothing\n", format="markdown").message
    assert "line 1: a checklist needs items such as" in message
    assert parse(items("- [x] A")).tasks == []


def test_items_inside_a_ticked_item_lose_their_parent_when_written() -> None:
    made = parse(items("- [x] A {worktree=w}", "  - [ ] B", "    - [ ] C {after=a}"))
    assert [(t.name, t.parent, t.worktree, t.after) for t in made.tasks] == [
        ("b", "a", "w", []),
        ("c", "b", "w", ["a"]),
    ]
    again = parse(write(made, "markdown"))
    assert [(t.name, t.parent, t.worktree, t.after) for t in again.tasks] == [("b", None, "w", []), ("c", "b", "w", [])]


def test_a_checklist_is_written_as_a_person_would() -> None:
    made = parse(TEXT, personas=PERSONAS)
    assert write(made, "markdown", completed={"clean"}).splitlines() == [
        *("---", 'plan: "penguins-whole"', "---", "# penguins-whole", ""),
        "- [x] Clean the table {name=clean persona=implementer priority=900 max_retries=2}",
        "  run: python clean.py",
        "- [ ] Write it up {persona=implementer worktree=report after=clean}",
        '  run: ["python", "up.py"]',
        '  no_retry: ["ValueError", "Out, of it"]',
        '  metadata: {"pages": [1, "x"], "done": false}',
        r'  description: "What it is about:\n\n    - [links](https://example.org)\n\n```\n# no title\n```"',
        "  - [ ] Überarbeiten {persona=reviewer on_failure=ignore lease_seconds=1.5 worktree=}",
        *("", "    In few words.", ""),
    ]


SIGNS = st.sampled_from(
    [*"[]{}:=,#-*+<>`~'\"\\ \t\n\r1.)x", "\n- [ ] ", "\n1. [ ] ", "\n  ", "- [x] ", "{a=", '{run="']
)
MARKS = st.sampled_from(
    ["\n---\n", "plan: ", "\n  run: [", "\n  metadata: {", "\n```\n", "<!--", "-->", "after=", "# "]
)


@given(st.lists(SIGNS | MARKS | st.text(max_size=3), max_size=60).map("".join))
def test_no_text_is_answered_by_anything_but_a_plan_or_a_list_of_problems(text: str) -> None:
    for whole in (text, items(f"- [ ] A {text}", f"  {text}"), items("- [ ] A", f"  metadata: {text}")):
        try:
            made = parse(whole, personas=PERSONAS, format="markdown")
            write(made, "yaml")
        except BadInput as failed:
            error = failed.as_dict()
            assert json.dumps(error, ensure_ascii=False).encode()
            assert error["code"] == "PLAN_INVALID"
            assert all(p["line"] >= 1 and p["reason"] for p in error["details"]["problems"])


def test_budgets_stand_in_the_front_matter_and_in_braces() -> None:
    text = """\
---
plan: night
budget: 5usd, 8h
persona: implementer
---
- [ ] Clean {name=clean budget="3 attempts"}
- [ ] Report {name=report}
  budget: {"usd": 1.5}
"""
    plan = parse(text, personas=PERSONAS)
    for again in (plan, parse(write(plan, "markdown"), personas=PERSONAS)):
        assert again.budget == {"usd": 5.0, "seconds": 28_800.0}
        assert [task.budget for task in again.tasks] == [{"attempts": 3}, {"usd": 1.5}]
    wrong = refused("PLAN_INVALID", parse, text.replace("3 attempts", "a lot"), personas=PERSONAS)
    assert "write amounts such as `20usd" in str(wrong.details)
