"""Those who come without a token."""

from __future__ import annotations

from typing import Any

from workbench.app import Workbench
from workbench.ops import ANONYMOUS, Caller


async def come(workbench: Workbench, name: str = "Ada", by: Caller = ANONYMOUS, **more: Any) -> dict[str, Any]:
    """Register as a stranger."""
    return await workbench.dispatch(by, "register", {"name": name, **more})


async def status(workbench: Workbench, token: str, wait_seconds: float = 0) -> dict[str, Any]:
    """The status of a stranger's registration."""
    return await workbench.dispatch(ANONYMOUS, "registration_status", {"token": token, "wait_seconds": wait_seconds})
