"""What is said of an answer that is completed, and yet not what was asked for."""

from __future__ import annotations

CUT = "length"
"""The end of an answer that reached its limit of tokens."""


def remark(end: str | None, cut_at: int | None, text: str) -> str | None:
    """A sentence about an answer that is completed; None: there is nothing to say.

    Args:
        end: why the model ended it.
        cut_at: the tokens at which its limit cut it; None: unknown.
        text: that of the answer.
    """
    if end == CUT:
        return f"This answer is cut at {cut_at:,} tokens." if cut_at else "This answer is cut at its limit of tokens."
    return None if text.strip() else "This answer is empty."
