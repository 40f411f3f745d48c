"""The addresses of resources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import NotFound
from workbench.ops import collect
from workbench.services import SERVICES
from workbench.shells.mcp.addresses import LISTS, NUMBERS, SINGLE, ResourceAddress, ResourceKind, locate

CATALOGUE = collect(SERVICES)


@given(st.sampled_from(SINGLE), st.text(st.characters(codec="utf-8"), min_size=1), st.integers(1, 2**62))
def test_an_address_leads_back_to_what_it_was_made_from(kind: ResourceKind, text: str, number: int) -> None:
    values = {name: str(number) if name in NUMBERS else text for name in kind.parameters}
    address = ResourceAddress(kind, values)
    assert locate(address.uri) == address
    assert locate(address.uri).arguments == {**kind.fixed, **values}


@pytest.mark.parametrize(
    "uri",
    [
        *("", "tasks/1", "workbench:tasks/1", "workbench://", "workbench://tasks/"),
        *("workbench://tasks/1/", "file:///etc"),
        *("workbench://tasks/007", "workbench://tasks/+7", "workbench://tasks/-7", "workbench://tasks/7.0"),
        *("workbench://tasks/seven", "workbench://tasks/0", "workbench://tasks/7?limit=1", "workbench://plans/a/b"),
        *("workbench://worktrees/a", "workbench://worktrees/a/diff/b", "WORKBENCH://tasks/1", "workbench://tasks/1\n"),
        *("profile://", "profile://a/", "profile://a/1/2", "profile:///1", "profile://a?b"),
    ],
)
def test_any_other_text_is_refused_as_an_address(uri: str) -> None:
    with pytest.raises(NotFound, match="RESOURCE_NOT_FOUND"):
        locate(uri)


@pytest.mark.parametrize("kind", [*LISTS, *SINGLE], ids=lambda kind: kind.path)
def test_the_operation_of_each_kind_only_reads_and_takes_its_arguments(kind: ResourceKind) -> None:
    operation = CATALOGUE[kind.operation]
    assert operation.reads
    assert operation.parameters >= {*kind.fixed, *kind.parameters}
    assert kind in SINGLE or locate(kind.address) == ResourceAddress(kind, {})
