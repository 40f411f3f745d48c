"""The forms of servers' questions: what was typed, and what looks like a secret or like a link."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.rules.tools.questions import is_link, problem, secret_fields, typed


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "007", "007"),
        ("integer", "7", 7),
        ("number", "1.5", 1.5),
        ("boolean", "yes", True),
        ("boolean", "no", False),
        ("array", "a, b", ["a", "b"]),
        ("array", '["a,b"]', ["a,b"]),
    ],
)
def test_what_is_typed_has_the_type_of_its_field(kind: str, text: str, value: Any) -> None:
    read = typed({"type": kind}, text)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(("kind", "text"), [("integer", "seven"), ("number", "x"), ("boolean", "perhaps")])
def test_what_is_no_value_of_its_field_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        typed({"type": kind}, text)


def test_fields_that_look_like_secrets_are_found_by_name_title_and_format() -> None:
    fields = {"password": {}, "x": {"title": "API key"}, "y": {"format": "password"}, "city": {"type": "string"}}
    assert secret_fields({"properties": fields}) == ["password", "x", "y"]
    assert problem({"properties": fields}) is None
    assert "fields" in (problem({"properties": {str(n): {} for n in range(51)}}) or "")


@pytest.mark.parametrize("more", [{"required": 5}, {"required": [["a"]]}])
@pytest.mark.parametrize("field", [{"oneOf": 5}, {"enum": "ab"}, {}])
def test_a_form_that_is_none_of_the_protocol_is_not_shown(more: dict[str, Any], field: dict[str, Any]) -> None:
    assert problem({"properties": {"a": field}, **more})
    assert bool(problem({"properties": {"a": field}, "required": ["a", "b"]})) is bool(field)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.org/a?b=c", True),
        ("http://127.0.0.1:8/", True),
        ("javascript:alert(1)", False),
        ("https://bank.example@evil.example/", False),
        ("https://", False),
        ("https://[", False),
    ],
)
def test_only_addresses_of_the_web_that_hide_no_host_are_links(url: str, shown: bool) -> None:
    assert is_link(url) is shown
