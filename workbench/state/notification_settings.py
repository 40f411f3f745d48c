"""The settings of what the person is told, and how; see `workbench.services.notifications`."""

from __future__ import annotations

import json
import re
from ipaddress import ip_address
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode

SUBJECTS = ("waiting", "failed", "silent", "budget", "done", "schedule")
"""What the person may be told of."""
HEADER = re.compile(r"[A-Za-z0-9-]{1,100}: *(?:(?:Bearer|Basic|Token|token) )?(?:env|file|op|keyring)://\S.*")


class NotificationSettings(BaseSettings):
    """The settings of what the person is told. Those that run or call something count from a project's file only if it
    is trusted."""

    notify: Annotated[tuple[str, ...], NoDecode] = Field(
        SUBJECTS,
        description="What you are told of: waiting (something needs your decision), failed (a task has failed for "
        "good), silent (an agent), budget (80 % of one is used), done (a plan is completed), schedule (one was late or "
        "missed, or ended before all was done). A list, or separated by commas.",
    )
    notify_digest_seconds: float = Field(
        30.0, ge=0, description="How long what happens is gathered before you are told of it, in one message."
    )
    notify_panel: bool = Field(
        True, description="Whether an open panel shows the message as a notification of JupyterLab."
    )
    notify_command: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Your own command for each message: a line for the shell, or a list. It runs unconfined, with the "
        "message as JSON on standard input, and as a sentence in WORKBENCH_MESSAGE.",
    )
    notify_webhook: str = Field(
        "",
        max_length=2_000,
        description="An https address that gets each message as JSON; http only for this machine itself.",
    )
    notify_header: str = Field(
        "",
        max_length=2_000,
        description="A header for the webhook whose value is a reference to a secret, such as "
        "`Authorization: Bearer env://HOOK_TOKEN`.",
    )
    notify_seconds: float = Field(
        10.0, gt=0, le=600, description="How long your command may run, and your webhook may take to answer."
    )
    notify_tries: int = Field(
        10, ge=1, le=100, description="How often a webhook is called that cannot be reached or answers 5xx."
    )
    stall_seconds: float = Field(
        900.0,
        ge=0,
        description="After how long without output, work of the processor and requests to models an agent with a task "
        "is marked as silent. It goes on. 0: never.",
    )

    @field_validator("notify", mode="before")
    @classmethod
    def _split_subjects(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = json.loads(value) if value.lstrip().startswith("[") else value.split(",")
        if not isinstance(value, list | tuple):
            return value
        subjects = tuple(subject.strip() for subject in value if isinstance(subject, str) and subject.strip())
        if len(subjects) < len([one for one in value if one != ""]) or not set(subjects) <= set(SUBJECTS):
            raise ValueError(f"each of the list should be one of {', '.join(SUBJECTS)}")
        return subjects

    @field_validator("notify_command", mode="before")
    @classmethod
    def _as_command(cls, value: Any) -> Any:
        if isinstance(value, str):
            line = value.strip()
            return json.loads(line) if line.startswith("[") else ("/bin/sh", "-c", line) if line else ()
        return value

    @field_validator("notify_webhook")
    @classmethod
    def _require_safe_address(cls, value: str) -> str:
        address = urlsplit(value)
        host = address.hostname or ""
        if value and not (host and (address.scheme == "https" or (address.scheme == "http" and _is_own_machine(host)))):
            raise ValueError("it should be an https address; http is for this machine only")
        return value

    @field_validator("notify_header")
    @classmethod
    def _require_reference(cls, value: str) -> str:
        if value and not HEADER.fullmatch(value):
            raise ValueError(
                "it should be a name and a reference to a secret: `Authorization: Bearer env://HOOK_TOKEN`"
            )
        return value


def _is_own_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
