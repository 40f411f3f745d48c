"""The arguments of a call are checked; the library that does so is loaded beside everything else."""

from __future__ import annotations

import asyncio
import threading
from functools import cache
from typing import Any

import pytest

from tests.services.tools.conftest import Shelf, begin, code_of
from workbench.app import Workbench
from workbench.ops import OPERATOR
from workbench.rules.tools import arguments
from workbench.services.tools.tool import Scope

pytestmark = pytest.mark.anyio


async def test_the_loop_goes_on_while_the_library_is_loaded(
    workbench: Workbench, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, go_on, library = threading.Event(), threading.Event(), arguments._library

    def slow() -> Any:
        loading.set()
        assert go_on.wait(30), "the loop waits for the library"
        return library()

    monkeypatch.setattr(arguments, "_library", cache(slow))
    shelf.put("add", parameters={"type": "object", "required": ["numbers of this test"]})
    call = begin(workbench, "add", {}, Scope(OPERATOR))
    await asyncio.to_thread(loading.wait, 30)
    go_on.set()
    await asyncio.wait({call})
    assert code_of(call) == "INVALID_ARGUMENTS"
