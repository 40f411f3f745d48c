"""Plans as text: each problem with its line, and an order for each accepted plan."""

from __future__ import annotations

import json
import re
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.errors import BadInput
from workbench.rules import yaml_text
from workbench.rules.tasks.plan import compare, digest, find_cycle, in_order, parse, rename, write

PERSONAS = ["implementer", "reviewer"]


def task(name: str, *more: str) -> str:
    """A task of three lines, and more."""
    lines = [f"  - name: {name}", f"    title: Do {name}", "    persona: implementer"]
    return "\n".join([*lines, *(f"    {line}" for line in more)]) + "\n"


def plan(*tasks: str) -> str:
    """A plan whose first task begins in line 3."""
    return "plan: p\ntasks:\n" + "".join(tasks)


def one(*more: str) -> str:
    """A plan of one task, `a`, and more lines of it."""
    return plan(task("a", *more))


def two(*more: str) -> str:
    """A plan of two tasks, `a` and `b`, and more lines of the second, which begins in line 6."""
    return plan(task("a"), task("b", *more))


def problems(text: str) -> list[tuple[int, str]]:
    """The problems of a plan."""
    details = refused("PLAN_INVALID", parse, text, personas=PERSONAS).details
    return [(p["line"], p["reason"]) for p in details["problems"]]


CASES: dict[str, tuple[str, int, str]] = {
    "empty": ("", 1, "a plan is a mapping"),
    "only a comment": ("# nothing\n", 1, "a plan is a mapping"),
    "a list": ("- a\n", 1, "a plan is a mapping"),
    "no tasks": ("plan: p\n", 1, "`tasks` must be a list"),
    "an empty list of tasks": ("plan: p\ntasks: []\n", 1, "`tasks` must be a list"),
    "tasks that are no list": ("plan: p\ntasks: all\n", 1, "`tasks` must be a list"),
    "a task that is a word": (plan("  - clean\n"), 1, "a task is a mapping"),
    "broken YAML": (plan(task("a"), "  - name: [b\n", task("c")), 7, "not YAML: "),
    "a tab": (plan("\t- name: a\n"), 3, "not YAML: "),
    "two documents": (plan(task("a")) + "---\n" + plan(task("b")), 6, "not YAML: "),
    "a key of the plan that is unknown": ("\nplan: p\nowner: me\ntasks:\n" + task("a"), 2, "unknown key 'owner'"),
    "a key of a task that is unknown": (two("when: now"), 6, "unknown key 'when'; the known keys are name, title,"),
    "the parser's own word for a line": (one("line: 7"), 3, "unknown key 'line'; the known keys are name"),
    "no title": (plan("  - name: a\n    persona: reviewer\n"), 3, "title: required"),
    "no name": (plan("  - title: a\n    persona: reviewer\n"), 3, "name: required"),
    "a name with a space": (plan(task("'a b'")), 3, "name: must be letters, digits, dots"),
    "a priority that is a word": (one("priority: high"), 3, "priority: must be a whole number"),
    "a title that is a list": (plan("  - {name: a, title: [x], persona: reviewer}\n"), 3, "title: must be text"),
    "a time for a number": (one("lease_seconds: 12:30"), 3, "lease_seconds: must be a"),
    "another base": (one("priority: 0x10"), 3, "priority: must be a whole number"),
    "too many retries": (one("max_retries: 101"), 3, "max_retries: "),
    "a lease of no time": (one("lease_seconds: 0"), 3, "lease_seconds: "),
    "an empty command": (one("run: []"), 3, "run"),
    "a name twice": (plan(task("a"), task("b"), task("a")), 9, "the name 'a' is taken by line 3"),
    "an unknown other": (one("after: [z]"), 3, "'a' comes after 'z', which is not in the plan"),
    "after itself": (two("after: [b]"), 6, "'b' comes after itself"),
    "a circle of two": (plan(task("a", "after: [b]"), task("b", "after: [a]")), 3, "wait for each other: a → b → a"),
    "a circle of three": (
        *(plan(task("z"), task("a", "after: [z, c]"), task("b", "after: [a]"), task("c", "after: [b]")),),
        *(6, "wait for each other: a → c → b → a"),
    ),
    "more than can be waited for": (
        plan(task("a", f"after: {['b'] * 1001}"), task("b")),
        3,
        "after: must have at most 1,000 items",
    ),
    "an unknown persona": (plan(task("a").replace("implementer", "wizard")), 3, "unknown persona 'wizard'"),
    "a worktree outside": (two("worktree: ../x"), 6, "worktree '../x'"),
    "a worktree without a name": (one("worktree: ''"), 3, "worktree ''"),
    "a reserved worktree": (one("worktree: main"), 3, "worktree 'main'"),
    "a key twice": (one("priority: 1", "priority: 2"), 7, "the key 'priority' is given twice"),
    "a key of the plan twice": ("plan: p\nplan: q\ntasks: []\n", 2, "the key 'plan' is given twice"),
    "a key that is a list": (one("? [x, y]", ": z"), 6, "not YAML: a key must be a word"),
    "a key that is a mapping": (one("? {x: y}", ": z"), 6, "not YAML: a key must be a word"),
    "an alias": (one("metadata: {x: &x [1], y: *x}"), 6, "aliases are not allowed"),
    "a plan without a proper name": (
        "# a comment\nplan: a b\ntasks:\n" + task("a"),
        2,
        "plan: must be letters, digits, dots",
    ),
    "a plan with nothing for a name": ("plan:\ntasks:\n" + task("a"), 1, "plan: must be text"),
    "a tag that does not fit": (one("priority: !!int ''"), 6, "not YAML: the tag"),
    "a list that is said to be a mapping": (plan("  - !!map [a]\n"), 3, "not YAML: the tag"),
    "a date that is none": (one("description: !!timestamp x"), 6, "not YAML: the tag"),
    "a word that is no truth value": (one("description: !!bool x"), 6, "not YAML: the tag"),
    "an object of the program": (one("description: !!python/object:os.system {}"), 6, "not YAML: "),
    "a control character": (plan(task("a")) + "\x01", 1, "not YAML: "),
    "NUL": (two('description: "a\\0b"'), 6, "description: it contains the control character U+0000"),
    "NUL in a command": (one('run: [echo, "\\x00"]'), 3, "run: it contains the control character U+0000"),
    "NUL in an error": (one('no_retry: ["\\0"]'), 3, "no_retry: it contains the control character U+0000"),
    "an escape": (one('context_ref: "\\e[31m"'), 3, "context_ref: it contains the control character U+001B"),
    "an escape of eight bits": (one('session: "\\x9b"'), 3, "session: it contains the control character U+009B"),
    "NUL among the metadata": (one('metadata: {x: ["\\0"]}'), 3, "it contains the character NUL"),
    "NUL in the name of metadata": (one('metadata: {"\\0": x}'), 3, "it contains the character NUL"),
    "half a character": (one('description: "\\ud800"'), 3, "description: "),
    "metadata beyond numbers": (one("metadata: {x: 1e999}"), 6, "not YAML: 1e999 is too"),
    "half a character among the metadata": (one('metadata: {x: "\\ud800"}'), 3, "metadata: "),
    "a policy that is none": (one("on_failure: panic"), 3, "on_failure: must be block, cancel"),
    "an error without a name": (one("no_retry: ['']"), 3, "no_retry.0: must not be empty"),
    "errors that are a word": (one("no_retry: ValueError"), 3, "no_retry: must be a list of names, like [first,"),
    "others that are a word": (two("after: a"), 6, "after: must be a list of names, like [first,"),
    "a session without a name": (one("session: ''"), 3, "session: must not be empty"),
    "an unknown whole": (one("parent: z"), 3, "'a' is part of 'z', which is not in the plan"),
    "a part of itself": (two("parent: b"), 6, "'b' is part of itself"),
    "parts of each other": (plan(task("a", "parent: b"), task("b", "parent: a")), 3, "parts of each other: a → b → a"),
    "subtasks that are none": (one("subtasks: [b]"), 3, "a task is a mapping"),
    "an empty list of subtasks": (one("subtasks: []"), 3, "`subtasks` must be a list"),
    "a part that says where it belongs": (
        one("subtasks:", "- {name: b, title: B, parent: a}"),
        7,
        "it is a subtask by its position",
    ),
    "a part with a name that is taken": (
        *(plan(task("a", "subtasks:", "- {name: b, title: B}"), task("b")), 8, "the name 'b' is taken by line 7"),
    ),
    "a tower": (
        plan(task("n0"), *(task(f"n{n}", f"parent: n{n - 1}") for n in range(1, 51))),
        202,
        "more than 49 tasks",
    ),
    "depth": (one("metadata:", f"  {'[' * 5000}"), 7, "not YAML: it is nested too deeply"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_plan_is_refused_with_the_line_and_the_reason(case: str) -> None:
    text, line, reason = CASES[case]
    (found,) = problems(text)
    assert found[0] == line
    assert reason in found[1]


def test_everything_that_is_wrong_is_said_at_once_and_in_order_of_the_lines() -> None:
    tasks = [task("a", "worktree: HEAD", "after: [z]"), task("b", "when: 1", "after: 2")]
    found = problems("plan: a b\nowner: me\ntasks:\n" + "".join(tasks) + task("a").replace("implementer", "wizard"))
    assert [line for line, _ in found] == [1, 1, 4, 4, 9, 9, 14, 14]
    named = ("owner", "plan:", "'z'", "HEAD", "after:", "'when'", "taken by line 4", "wizard")
    assert [word for word in named if not any(word in reason for _, reason in found)] == []


def test_a_mistake_in_one_field_of_a_plan_does_not_hide_others() -> None:
    tasks = [
        *(task("a", "priority: high", "after: [z, c]"), task("a", "titel: x", "worktree: HEAD", "parent: y")),
        task("c", "max_retries: -1", "after: [a]").replace("implementer", "wizard"),
        "  - {title: T, persona: wizard, after: [x], parent: w}\n",
        "  - {title: T, persona: [x], after: [a], worktree: 7}\n",
        "  - {name: b, persona: reviewer, after: [b], worktree: HEAD}\n",
    ]
    found = [(line, re.split("[;.] | has 1 to", reason)[0]) for line, reason in problems(plan(*tasks))]
    head = "worktree 'HEAD': A worktree's name"
    assert found == [
        (3, "'a' comes after 'z', which is not in the plan"),
        (3, "priority: must be a whole number"),
        (3, "the tasks wait for each other: a → c → a"),
        *((8, "'a' is part of 'y', which is not in the plan"), (8, "the name 'a' is taken by line 3")),
        *((8, "unknown key 'titel'"), (8, head)),
        *((14, "max_retries: must be at least 0"), (14, "unknown persona 'wizard'")),
        *((19, "name: required"), (19, "this task comes after 'x', which is not in the plan")),
        *((19, "this task is part of 'w', which is not in the plan"), (19, "unknown persona 'wizard'")),
        *((20, "name: required"), (20, "persona: must be text")),
        (20, "worktree: must be text"),
        *((21, "'b' comes after itself"), (21, "title: required"), (21, head)),
    ]


def test_a_few_lines_of_aliases_do_not_become_billions_of_nodes() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"{c}: &{c} [*{p}, *{p}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True))
    assert problems(bomb) == [(2, "not YAML: aliases are not allowed")]


def test_the_message_lists_the_first_problems_for_a_person() -> None:
    assert (
        "nothing was created or changed.\n  line 3: 'a' comes after 'z'"
        in refused("PLAN_INVALID", parse, one("after: [z]")).message
    )


def test_a_plan_keeps_all_that_a_task_says() -> None:
    text = plan(
        task("a", "run: [echo, hi]", "metadata: {x: {y: [1, null]}}"),
        task("b", "run: echo", "after: [a]", "priority: -7", "worktree: w", "max_retries: 0", "lease_seconds: 1.5"),
    )
    made = parse(text)
    first, second = made.tasks
    assert (made.plan, made.worktrees, first.line, second.line) == ("p", ["w"], 3, 8)
    assert (first.run, first.metadata) == (["echo", "hi"], {"x": {"y": [1, None]}})
    assert (first.priority, first.worktree, first.after) == (500, None, [])
    assert (second.run, second.after, second.worktree) == ("echo", ["a"], "w")
    assert (second.priority, second.max_retries, second.lease_seconds) == (-7, 0, 1.5)


def test_a_plan_without_a_name_takes_the_one_of_the_caller() -> None:
    assert parse("tasks:\n" + task("a"), default_name="mine").plan == "mine"
    assert rename(parse(one()), "q").plan == "q"
    message = refused("PLAN_INVALID", rename, parse(one()), "a b").message
    assert message.startswith("'a b' is not a valid plan name")


SIGNS = st.sampled_from("[]{}:,&*!|>'\"%@`#-?\n \t\\")
MARKS = st.sampled_from(["\n  - ", ": ", "!!int ", "!!map ", "!!set ", "? ", "<<: ", "plan", "tasks", "after"])


@given(st.text() | st.lists(SIGNS | MARKS | st.text(max_size=3), max_size=40).map("".join))
def test_no_text_is_answered_by_anything_but_a_plan_or_a_list_of_problems(text: str) -> None:
    for whole in (text, plan(task("a", f"metadata: {text}")), plan(task("a"), text)):
        try:
            parse(whole, personas=PERSONAS)
        except BadInput as failed:
            error = failed.as_dict()
            assert json.dumps(error, ensure_ascii=False).encode()
            assert error["code"] == "PLAN_INVALID"
            assert all(p["line"] >= 1 and p["reason"] for p in error["details"]["problems"])


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,9}"
PRETTY = [
    "Do it",
    "Do it {now}",
    "Ünder {a=b}",
    "a: b",
    "- [ ] x",
    "  in\n  lines\n",
    "# x",
    "```\n- [ ] x",
    "'",
    '"',
    "[x]",
]
READABLE = st.characters(codec="utf-8", exclude_categories=["Cc"], include_characters="\t\n\r")
WORDS = st.text(READABLE, min_size=1, max_size=30) | st.sampled_from(PRETTY)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A plan as data, whose tasks wait only for later or earlier ones, never in a circle."""
    names = draw(st.lists(st.from_regex(NAME, fullmatch=True), min_size=1, max_size=6, unique=True))
    optional = {
        "description": st.just("") | WORDS | st.lists(WORDS, max_size=4).map("\n\n".join),
        "priority": st.integers(-1_000_000, 1_000_000),
        "worktree": st.sampled_from(["w", "other-one"]),
        "run": WORDS | st.lists(WORDS, min_size=1, max_size=3),
        "max_retries": st.integers(0, 100),
        "no_retry": st.lists(WORDS, min_size=1, max_size=3),
        "on_failure": st.sampled_from(["block", "cancel", "ignore"]),
        "session": WORDS,
        "context_ref": WORDS,
        "lease_seconds": st.floats(0.001, 86_400),
        "metadata": st.dictionaries(TEXTS, JSON, max_size=3),
    }
    tasks = []
    for at, name in enumerate(names):
        must = {"name": st.just(name), "title": WORDS, "persona": st.sampled_from(PERSONAS)}
        after = st.lists(st.sampled_from(names[:at]), unique=True) if at else st.just([])
        before = {"after": after, "parent": st.sampled_from(names[:at])} if at else {"after": after}
        tasks.append(draw(st.fixed_dictionaries(must, optional={**optional, **before})))
    return {"plan": draw(st.from_regex(r"[a-z0-9]{1,9}", fullmatch=True)), "tasks": draw(st.permutations(tasks))}


@given(st.characters(categories=["Cc"]))
def test_no_control_character_but_tabs_and_ends_of_lines_is_in_a_text(character: str) -> None:
    text = one(f'description: "\\x{ord(character):02x}"')
    if character in "\t\n\r":
        assert parse(text).tasks[0].description == character
    else:
        refused("PLAN_INVALID", parse, text)


@given(documents())
def test_a_plan_that_is_written_is_read_as_it_was(document: dict[str, Any]) -> None:
    made = parse(yaml_text.write(document), personas=PERSONAS)
    said = made.model_dump(exclude_unset=True, exclude={"ticked": True, "tasks": {"__all__": {"line"}}})
    assert said == document
    for form in ("yaml", "markdown"):
        text = write(made, form)
        again = parse(text, personas=PERSONAS)
        assert (again.plan, digest(again)) == (made.plan, digest(made))
        assert write(again, form) == text
        assert not compare(made.tasks, again.tasks).text


def test_yaml_is_written_as_a_person_would() -> None:
    first = task("a", "description: |", "  One line.", "", "    And another.", "run: python x.py", "no_retry: [E]")
    text = plan(first, task("b", "after: [a]", "metadata: {x: [1, null]}", "on_failure: cancel"))
    assert write(parse(text), "yaml").splitlines() == [
        *("plan: p", "tasks:", "  - name: a", "    title: Do a", "    persona: implementer"),
        *("    description: |", "      One line.", "", "        And another.", "    run: python x.py"),
        *("    no_retry:", "      - E", "  - name: b", "    title: Do b", "    persona: implementer"),
        *(
            "    after:",
            "      - a",
            "    on_failure: cancel",
            "    metadata:",
            "      x:",
            "        - 1",
            "        - ",
        ),
    ]


def test_a_task_may_be_written_inside_the_one_it_is_part_of_and_say_less() -> None:
    inner = ["- {name: b, title: B}", "- {name: c, title: C, persona: reviewer, worktree: null}"]
    made = parse(plan(task("d", "parent: b"), task("a", "worktree: w", "subtasks:", *inner), task("e")))
    assert [(t.name, t.parent, t.persona, t.worktree, t.line) for t in made.tasks] == [
        ("d", "b", "implementer", None, 3),
        ("a", None, "implementer", "w", 7),
        ("b", "a", "implementer", "w", 12),
        ("c", "a", "reviewer", None, 13),
        ("e", None, "implementer", None, 14),
    ]


def test_plans_mean_the_same_when_only_their_form_differs() -> None:
    said = parse(plan(task("a"), task("b", "after: [a]", "priority: 500", "description: x"))).model_copy(
        update={"plan": "other"}
    )
    form = plan(
        task("b", "description: |", "  x", "", "after: [a, a]"), task("a").replace("implementer", "Implementer")
    )
    assert digest(said) == digest(parse(form)) == digest(parse("# c\r\n" + form.replace("\n", "\r\n")))
    assert digest(said) != digest(parse(form.replace("x\n", "y\n")))


@given(documents())
def test_in_order_each_task_comes_after_what_it_waits_for_and_otherwise_as_written(document: dict[str, Any]) -> None:
    made = parse(yaml_text.write(document))
    names = [t.name for t in in_order(made)]
    assert sorted(names) == sorted(t.name for t in made.tasks)
    assert all(names.index(other) < names.index(t.name) for t in made.tasks for other in t.after)
    free = [t.name for t in made.tasks if not t.after]
    assert names[: len(free)] == free


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefg"), max_size=3)))
def test_a_circle_is_found_exactly_where_there_is_one(edges: dict[str, list[str]]) -> None:
    known = {node: [n for n in to if n in edges] for node, to in edges.items()}
    cycle = find_cycle(edges)
    if cycle is None:
        TopologicalSorter(known).prepare()
        return
    with pytest.raises(CycleError):
        TopologicalSorter(known).prepare()
    assert cycle[0] == cycle[-1]
    assert len(set(cycle)) == len(cycle) - 1
    assert all(after in edges[node] for node, after in pairwise(cycle))


def test_a_chain_as_long_as_a_plan_may_be_needs_no_deep_stack() -> None:
    chain = {str(n): [str(n + 1)] for n in range(10_000)}
    assert find_cycle(chain) is None
    assert len(find_cycle(chain | {"10000": ["0"]}) or []) == 10_002


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ({}, None),
        ({"a": ["a"]}, ["a", "a"]),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, ["b", "c", "b"]),
        ({"a": ["elsewhere", "b"], "b": ["a"]}, ["a", "b", "a"]),
        ({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}, None),
        ({"a": [], "b": ["a", "c"], "c": ["b"]}, ["b", "c", "b"]),
        ({"a": ["b", "c"], "b": [], "c": ["a"]}, ["a", "c", "a"]),
    ],
)
def test_a_cycle_is_named_without_the_path_to_it(edges: dict[str, list[str]], cycle: list[str] | None) -> None:
    assert find_cycle(edges) == cycle


@pytest.mark.parametrize("run", ["true", "5", "[1, true]"])
def test_a_command_that_yaml_takes_for_something_else_is_to_be_quoted_and_said_once(run: str) -> None:
    problems = refused("PLAN_INVALID", parse, one(f"run: {run}")).details["problems"]
    assert [problem["reason"] for problem in problems if "quotes" in problem["reason"]] == [
        "run: must be a command, or a list of words; put what YAML takes for something else in quotes"
    ]
