"""Differences of definitions, as a person reads them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workbench.rules.definitions.comparison import MOST_CHARACTERS, MOST_LINES, Difference, Status, differences
from workbench.rules.definitions.model import Definition

RULE = {"name": "cite", "text": "Cite what you read.", "include": "always"}


def definition(**fields: Any) -> Definition:
    return Definition.model_validate({"metadata": {"id": "reader", "name": "Reader"}, **fields})


def patches(old: Definition, new: Definition) -> dict[str, str | None]:
    return {one.path: one.patch for one in differences(old, new)}


def test_equal_definitions_do_not_differ_whenever_they_were_created() -> None:
    metadata = {"id": "reader", "name": "Reader", "created": "2026-01-01T00:00:00Z"}
    assert differences(definition(rules=[RULE]), definition(rules=[RULE], metadata=metadata)) == []


def test_a_changed_setting_is_one_line() -> None:
    patch = patches(definition(settings={"temperature": 0.2}), definition(settings={"temperature": 0.3}))
    assert patch.keys() == {"agent.yaml"}
    lines = (patch["agent.yaml"] or "").splitlines()
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == ["-  temperature: 0.2", "+  temperature: 0.3"]


def test_rules_are_added_changed_and_removed() -> None:
    old = definition(rules=[RULE, {"name": "gone", "text": "x"}])
    new = definition(rules=[RULE | {"text": "Cite all."}, {"name": "new", "text": "y"}])
    assert [(one.path, one.status) for one in differences(old, new)] == [
        ("rules/cite.md", Status.CHANGED),
        ("rules/gone.md", Status.REMOVED),
        ("rules/new.md", Status.ADDED),
    ]


def test_secrets_are_masked() -> None:
    old = definition(providers={"openai": {"OPENAI_API_KEY": "sk-old"}})
    new = definition(providers={"openai": {"OPENAI_API_KEY": "sk-new", "OPENAI_BASE_URL": "http://localhost"}})
    found = repr(differences(old, new))
    assert "sk-" not in found
    assert "http://localhost" in found


def test_long_texts_are_named_without_a_patch() -> None:
    long = "\n".join(map(str, range(MOST_LINES + 1)))
    assert differences(definition(), definition(prompt=long)) == [Difference("prompt.md", Status.CHANGED, None)]


def test_patches_stop_where_they_would_be_too_long_together() -> None:
    rules = [{"name": f"r{n}", "text": "x" * 150_000} for n in range(4)]
    found = differences(definition(), definition(rules=rules))
    assert [one.patch is None for one in found] == [False, False, True, True]
    assert sum(len(one.patch or "") for one in found) <= MOST_CHARACTERS


@given(st.text(max_size=200), st.text(max_size=200))
def test_every_difference_of_prompts_is_found(old: str, new: str) -> None:
    one, other = definition(prompt=old), definition(prompt=new)
    assert bool(differences(one, other)) == (one != other)
