"""What a model is asked, and the limits of its answer."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from workbench.providers.frames import History

STEPS = 20
"""How often a model is asked for one answer, if nothing else is set."""
Thinking = bool | Literal["minimal", "low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Limits of one answer.

    Args:
        steps: how often the model is asked; a step follows each round of tool calls.
        tokens: of all requests and answers together. Checked before each step, and after it.
        cost_usd: in all steps together. Checked after each step; the model must be one whose price is known.
        seconds: for the whole, with its tools.
        silence_seconds: how long a provider may send nothing.
        attempts: how often a request is sent if it fails before anything of its answer comes.
    """

    steps: int = STEPS
    tokens: int | None = None
    cost_usd: Decimal | None = None
    seconds: float = 600.0
    silence_seconds: float = 120.0
    attempts: int = 4


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """What a model is asked.

    Args:
        history: that of the last `Completed`, or what `transcript.extended` made of it; None at the beginning.
        max_output_tokens: of one step.
        thinking: whether, or how much, the model thinks first; None: as it does by itself.
    """

    instructions: str
    prompt: str
    history: History | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    thinking: Thinking | None = None
