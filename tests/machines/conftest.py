"""Two machines that share a project by its database: two clones of a repository, each with its `.aiswarm/`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.conftest import git
from workbench.app import Workbench
from workbench.shells.serve import Servers
from workbench.state.database_url import DatabaseUrl
from workbench.state.settings import Settings

NewMachine = Callable[..., Settings]


@pytest.fixture
def machine(repository: Path, settings_of_tests: Settings, postgres_url: str, tmp_path: Path) -> NewMachine:
    """`machine("beta")`: the settings of another clone, which the project knows by that name; empty: by the host's."""

    def make(name: str, clone: str = "") -> Settings:
        project = tmp_path / (clone or name)
        git("clone", "-q", str(repository), str(project), cwd=tmp_path)
        url = DatabaseUrl(postgres_url)
        return settings_of_tests.model_copy(update={"project": project.resolve(), "database_url": url, "machine": name})

    return make


@asynccontextmanager
async def serving(settings: Settings, *, end_workers: bool = True) -> AsyncIterator[Workbench]:
    """An open project whose servers run."""
    async with Workbench.open(settings) as workbench:
        servers = Servers(workbench, end_workers=end_workers)
        await servers.start()
        try:
            yield workbench
        finally:
            await servers.stop()
