"""Tab in `wb.call("…")` and `wb.help("…")`: the names of operations and of their arguments."""

from __future__ import annotations

import re

from IPython.core.completer import (
    CompletionContext,
    IPCompleter,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)

from workbench.ops import collect
from workbench.services import SERVICES

NAME = re.compile(r"\bwb\.(?:call|help)\(\s*[\"'](\w*)$")
ARGUMENT = re.compile(r"\bwb\.call\(\s*[\"'](\w+)[\"']\s*,(?:[^()]|\([^()]*\))*?(?<![=\w.\"'])(\w*)$")
PRIORITY = 100.0


@context_matcher(identifier="workbench", priority=PRIORITY)
def complete_call(context: CompletionContext) -> SimpleMatcherResult:
    """The completions for the text before the cursor."""
    text = context.text_until_cursor
    operations = collect(SERVICES)
    if found := NAME.search(text):
        names = [name for name in operations if name.startswith(found[1])]
        return _offered(found[1], names, "operation")
    if (found := ARGUMENT.search(text)) and found[1] in operations:
        parameters = operations[found[1]].arguments.model_fields
        return _offered(found[2], [f"{name}=" for name in parameters if name.startswith(found[2])], "argument")
    return SimpleMatcherResult(completions=[])


def install(completer: IPCompleter) -> None:
    """Offer them, once."""
    if complete_call not in completer.custom_matchers:
        completer.custom_matchers.append(complete_call)


def remove(completer: IPCompleter) -> None:
    """Offer them no longer."""
    if complete_call in completer.custom_matchers:
        completer.custom_matchers.remove(complete_call)


def _offered(fragment: str, names: list[str], kind: str) -> SimpleMatcherResult:
    completions = [SimpleCompletion(name, type=kind) for name in names]
    return {"completions": completions, "matched_fragment": fragment, "suppress": bool(names), "ordered": True}
