"""What the last attempt at a task left, and what its agent was told, in words for the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.drivers.stream import CONTINUED
from workbench.rules.failures import FailureKind

ERROR_LIMIT = 4_000
"""Characters of an error, with the end of the output, that the next attempt is told."""
_ADVICE = {
    FailureKind.CONTEXT: "Its conversation became too long for the model: read less at once, in smaller steps.",
    FailureKind.TURNS: "It used up its turns: do the most important part first, and more directly.",
    FailureKind.SILENT: "Its program stopped saying anything: start nothing that waits without end.",
}


def told(task: Mapping[str, Any], *, is_continued: bool) -> str:
    """What the last attempt before this one left: how it ended, its error with the end of its output, and its commits;
    and the messages to its agent and comments on the task.

    Args:
        task: as it was claimed.
        is_continued: whether its conversation goes on.
    """
    ended = [one for one in task.get("attempts", ()) if one["ended_at"] is not None]
    parts = [_last_attempt(task, ended[-1], is_continued=is_continued)] if ended else []
    if messages := task.get("messages"):
        parts.append("# What you were told\n\n" + "\n\n".join(message_text(message) for message in messages))
    return "\n\n".join(parts)


def message_text(message: Mapping[str, Any]) -> str:
    """A message, as its agent is told it."""
    about = f" about task {message['task_id']}" if message["task_id"] is not None else ""
    return f"{message['kind'].capitalize()} {message['id']} from {message['sender']}{about}:\n{message['text']}"


def _last_attempt(task: Mapping[str, Any], last: Mapping[str, Any], *, is_continued: bool) -> str:
    cause = last["error_class"]
    how = f"{last['outcome']} ({cause})" if cause and cause != last["outcome"] else str(last["outcome"])
    lines = [f"# The last attempt\n\nAttempt {last['attempt']}, by {last['agent_id']}, ended: {how}."]
    if last["error_message"]:
        lines.append(last["error_message"][:ERROR_LIMIT])
    lines += [_ADVICE[kind] for kind in _ADVICE if kind == cause]
    if kept := last["kept"]:
        what = f"{kept['commits']} {'commit' if kept['commits'] == 1 else 'commits'} in {kept['files']} files"
        lines.append(
            f"Its work is kept, but is not in your directory: {what}, as {kept['ref']}. The tool `get_attempt_diff` "
            f"(task_id {task['id']}, attempt {last['attempt']}) shows it; take from it what is right."
        )
    if is_continued:
        lines.append(CONTINUED)
    return "\n\n".join(lines)
