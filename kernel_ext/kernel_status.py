"""Keeps the kernel's status busy while a cell runs, although a panel is used meanwhile.

JupyterLab sends the messages of widgets to a subshell, and the kernel publishes busy and idle for each of them too.
JupyterLab takes the last status for that of the kernel (jupyterlab/jupyterlab#10701), so that one click in a panel made
a running cell look finished. It ignores the statuses that answer certain requests, such as `comm_info_request`. The
statuses of subshells are therefore published as if they answered one; the request is still identified by its id.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

_METHOD = "_publish_status"
_UNTRACKED = "comm_info_request"
_SUBSHELL_REQUESTS = {"create_subshell_request", "delete_subshell_request", "list_subshell_request"}
_COMMS = {"comm_open", "comm_msg", "comm_close"}


def separate(kernel: Any) -> None:
    """Publish the statuses of subshells apart from that of the kernel. Does nothing the second time.

    Does nothing either where ipykernel does not have the method that is replaced, which is private.
    """
    publish = getattr(kernel, _METHOD, None)
    if publish is None or _METHOD in vars(kernel) or _parameters(publish) != ["status", "channel", "parent"]:
        return

    def published(status: str, channel: str, parent: Mapping[str, Any] | None = None) -> None:
        publish(status, channel, _relabel(parent or kernel.get_parent(channel) or {}, channel))

    setattr(kernel, _METHOD, published)


def restore(kernel: Any) -> None:
    """Undo `separate`. A shell in a terminal has no kernel (None)."""
    if kernel is not None:
        vars(kernel).pop(_METHOD, None)


def _relabel(parent: Mapping[str, Any], channel: str) -> Mapping[str, Any]:
    header = parent.get("header") or {}
    kind = header.get("msg_type")
    if kind in _SUBSHELL_REQUESTS or (kind in _COMMS and (header.get("subshell_id") or channel == "control")):
        return {**parent, "header": {**header, "msg_type": _UNTRACKED}}
    return parent


def _parameters(method: Any) -> list[str]:
    return list(inspect.signature(method).parameters)
