"""A real host: in the process that serves, and attached to one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_ext.hosting.host import KernelHost
from tests.panels.front_end import FrontEnd
from workbench.settings import Settings


@pytest.fixture
def serving(migrated: Settings) -> Iterator[KernelHost]:
    host = KernelHost(migrated)
    host.start(0)
    yield host
    host.stop()


@pytest.fixture(params=["serving", "attached"])
def any_host(serving: KernelHost, request: pytest.FixtureRequest) -> Iterator[KernelHost]:
    if request.param == "serving":
        yield serving
        return
    second = KernelHost(serving.settings)
    second.start()
    assert second.attached
    yield second
    second.stop()


@pytest.fixture
def page() -> FrontEnd:
    return FrontEnd()
