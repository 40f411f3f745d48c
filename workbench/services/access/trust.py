"""The project's files that are not used because the user has not trusted them; see `workbench.trust.withheld`.

Trusting them is no operation: a client of the server cannot do it, only a user of this machine, by `workbench trust`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from workbench.errors import BadInput
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.trust.withheld import withheld


class UntrustedFile(Wire):
    """A file whose profile, or some of whose settings, are not used."""

    file: str
    settings: list[str]


class UntrustedFiles(Wire):
    """The files of which something is not used."""

    files: list[UntrustedFile]


@op(allow=Level.OPERATOR, reads=True, refreshed_by="clock")
async def list_untrusted_files(ctx: Ctx) -> UntrustedFiles:
    """List the project's settings and profiles that are not used. `workbench trust` shows and trusts them."""
    return UntrustedFiles(files=await asyncio.to_thread(_list_untrusted, ctx.settings.project))


def _list_untrusted(project: Path) -> list[UntrustedFile]:
    try:
        return [UntrustedFile(file=file.place, settings=list(file.names)) for file in withheld(project)]
    except BadInput:  # the file became invalid after the start: the next start names what is wrong
        return []
