"""The settings of a definition: set ones are written and kept, others are null."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.rules.definitions.composition import content_hash
from workbench.rules.definitions.former_settings import DEFAULTS
from workbench.rules.definitions.layout import change, parse
from workbench.rules.definitions.model import Definition
from workbench.rules.yaml_text import load, write

HEAD: dict[str, Any] = {"metadata": {"id": "a", "name": "A"}}
MODEL = {"temperature": (0.5, 0.2), "topP": (0.5, 0.9), "maxOutputTokens": (1000, 123), "maxChatTurns": (20, 7)}


def written(before: dict[str, Any], settings: dict[str, Any]) -> Any:
    """The settings in `agent.yaml` after a change from some settings to others."""
    texts = {"agent.yaml": write(HEAD | {"settings": before} if before else HEAD)}
    changed = parse(texts).model_dump(by_alias=True) | {"settings": settings}
    made = change(texts, Definition.model_validate(changed))
    return load(made.get("agent.yaml", texts["agent.yaml"]) or "").get("settings")


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in MODEL.items() for value in values])
def test_a_set_default_is_written_and_removing_it_leaves_nothing(name: str, value: Any) -> None:
    assert written({}, {name: value}) == {name: value}
    assert written({"model": "test:x"}, {"model": "test:x", name: value}) == {"model": "test:x", name: value}
    assert not written({name: value}, {})
    settings = parse({"agent.yaml": write(HEAD | {"settings": {name: value}})}).settings
    shown = settings.model_dump(
        by_alias=True, exclude={"model", "tool_permission", "allowed_tools", "disallowed_tools", "permission_mode"}
    )
    assert shown == {**dict.fromkeys(MODEL), name: value}


def test_a_block_of_all_former_defaults_is_not_set_and_goes_with_the_next_change() -> None:
    texts = {"agent.yaml": write(HEAD | {"settings": {**DEFAULTS}})}
    assert parse(texts) == parse({"agent.yaml": write(HEAD)})
    assert change(texts, parse(texts)) == {}
    assert written({**DEFAULTS}, {"temperature": 0.5}) == {"temperature": 0.5}
    assert written({**DEFAULTS, "temperature": 0.2}, {"temperature": 0.2, "topP": 0.5}) == {
        "temperature": 0.2,
        "topP": 0.5,
    }


def test_the_hash_of_a_definition_is_stable_and_covers_its_settings() -> None:
    def hashed(**settings: Any) -> str:
        return content_hash(Definition.model_validate(HEAD | {"settings": settings}))

    assert (hashed(), hashed(temperature=0.2)) == ("c4cd6b0e3fcbe717", "b2e1297503017982")
    assert len({hashed(), hashed(temperature=0.5), hashed(topP=0.5), hashed(temperature=0.5, topP=0.5)}) == 4
