"""Tokens and cost of the answers of models, where providers report them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted

if TYPE_CHECKING:
    import altair
    import pandas


def sentence(frame: pandas.DataFrame) -> str:
    """How many tokens, at which cost, and for what most."""
    text = f"{counted(frame['answers'].sum(), 'answer')} used"
    if frame["tokens_in"].isna().all():
        return f"{text} an unknown number of tokens: no provider reported them."
    read, written = frame["tokens_in"].sum(), frame["tokens_out"].sum()
    cost = "an unknown cost" if frame["usd"].isna().all() else f"{frame['usd'].sum():,.2f} US dollars"
    unpriced, unknown = (int(frame["answers"].sum() - frame[name].sum()) for name in ("priced", "reported"))
    if unpriced and not frame["usd"].isna().all():
        cost += f" ({counted(unpriced, 'answer')} of unknown cost)"
    text = f"{text} (of {unknown:,} no number is known)" if unknown else text
    most = f"most by {frame['definition'].iloc[0]} with {frame['model'].iloc[0]}"
    return f"{text} {int(read):,} tokens of input and {int(written):,} of output, for {cost}, {most}."


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """Tokens of each definition, input and output."""
    kinds = {"tokens_in": "input", "tokens_out": "output"}
    sums = frame.groupby("definition", sort=False)[list(kinds)].sum().reset_index().rename(columns=kinds)
    long = sums.melt("definition", list(kinds.values()), "direction", "tokens")
    return charts.bars(
        long,
        "definition",
        "tokens",
        "tokens",
        what="definitions",
        which="with most tokens",
        whole=True,
        colour="direction",
    )


TOKENS = Standard(
    "tokens", "tokens and cost, where providers report them", "No model has answered yet.", sentence, picture
)
