"""Settings of the interpreter that are changed for a while."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from workbench.system.interpreter import importing

OLDEST = 2


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.unfreeze()
    yield
    gc.unfreeze()
    (gc.enable if was_enabled else gc.disable)()


def is_old(made: object) -> bool:
    return any(one is made for one in gc.get_objects(generation=OLDEST))


@pytest.mark.long
def test_imported_objects_are_not_searched_for_garbage() -> None:
    gc.enable()
    with importing():
        searched_meanwhile = gc.isenabled()
        made = [object()]
        was_old = is_old(made)
    assert not searched_meanwhile
    assert not was_old
    assert is_old(made)
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


@pytest.mark.long
def test_garbage_among_imports_is_found_later() -> None:
    with importing():
        ring: list[object] = []
        ring.append(ring)
        del ring
    assert gc.collect() >= 1


def test_an_import_that_fails_lets_garbage_be_searched_again() -> None:
    gc.enable()
    with pytest.raises(ImportError), importing():
        raise ImportError
    assert gc.isenabled()


def test_a_disabled_or_frozen_garbage_collector_stays_so() -> None:
    gc.disable()
    gc.freeze()
    with importing():
        pass
    assert not gc.isenabled()
    assert gc.get_freeze_count() > 0
