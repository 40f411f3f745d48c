"""RIDs in messages: those that this node accepts are parsed, and others are kept as they are."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from rid_lib import RIDType
from rid_lib.types import KoiNetNode

from workbench.koi.envelope import Unsigned
from workbench.koi.payloads import EventsPayload
from workbench.koi.rids import LONGEST, ForeignRid, parse
from workbench.rules.personalities.rid import AgentPersonality

WRONG = [
    "orn:agent.personality:without-version",
    "orn:agent.personality:/1",
    f"orn:agent.personality:{'a' * 129}/1",
    f"orn:agent.personality:{'a' * 100}/{'1' * 300}",
    "orn:koi-net.node:without-hash",
    "orn:example.unknown:1",
    "https://example.org",
    "",
    "no RID",
    "orn:agent.personality:a\nb/1",
]


def test_rids_of_personalities_and_nodes_are_parsed() -> None:
    assert parse("orn:agent.personality:ada/1.0") == AgentPersonality("ada", "1.0")
    assert parse("orn:koi-net.node:ada+00ff") == KoiNetNode("ada", "00ff")
    longest = f"orn:agent.personality:{'a' * 128}/{'1' * 128}"
    assert len(longest) < LONGEST
    assert str(parse(longest)) == longest


@pytest.mark.parametrize("text", WRONG, ids=lambda text: " ".join(text.split())[:40] or "empty")
def test_a_rid_that_is_not_accepted_is_kept_as_it_is_and_spoils_no_other(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)
    raw = EventsPayload.model_validate(
        {"events": [{"rid": rid, "event_type": "NEW"} for rid in (text, "orn:agent.personality:ada/1")]}
    ).model_dump_json(exclude_none=True)
    wrong, right = EventsPayload.model_validate_json(raw).events
    assert isinstance(wrong.rid, ForeignRid)
    assert str(wrong.rid) == text
    assert right.rid == AgentPersonality("ada", "1")


def test_types_that_others_name_are_not_kept_for_ever() -> None:
    before = set(RIDType.type_table)
    for number in range(10):
        rid = f"orn:example.type{number}:1"
        EventsPayload.model_validate({"events": [{"rid": rid, "event_type": "NEW"}]})
        envelope = {"payload": {"type": "poll_events"}, "source_node": rid, "target_node": "orn:koi-net.node:ada+00ff"}
        with pytest.raises(ValidationError):
            Unsigned.model_validate(envelope)
    assert set(RIDType.type_table) == before
