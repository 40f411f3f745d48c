"""The Markdown of a model as HTML that does no harm: it loads nothing from elsewhere, and contains no other markup."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from workbench.present.inert import as_html, inert

if TYPE_CHECKING:
    from mistune import Markdown

LONGEST = 50_000
"""Longer texts are shown as they are: rendering takes time in which the kernel does nothing else."""


def as_markup(text: str) -> str:
    """A text in Markdown as HTML. Images are links, and HTML within it is shown as text. Mathematics stays LaTeX."""
    if len(text) > LONGEST:
        return f'<pre style="white-space: pre-wrap">{as_html(text)}</pre>'
    return str(_markdown()(inert(text)))


@cache
def _markdown() -> Markdown:
    import mistune  # takes 30 ms, and only a notebook needs it
    from mistune.util import escape

    class Renderer(mistune.HTMLRenderer):
        """HTML without images, which a page would load at once, with an address that the model has chosen."""

        def image(self, text: str, url: str, title: str | None = None) -> str:
            return self.link(text or escape(url), url, title)

        def text(self, text: str) -> str:
            """An amount such as $5 is no mathematics: JupyterLab looks for that within one element only."""
            return super().text(text).replace("$", "<span>$</span>")

        # The library's own would not escape these two.

        def inline_math(self, text: str) -> str:
            return rf"\({escape(text)}\)"

        def block_math(self, text: str) -> str:
            return f"<p>$${escape(text)}$$</p>\n"

    plugins: list[Any] = ["math", "strikethrough", "table"]
    return mistune.create_markdown(renderer=Renderer(escape=True), plugins=plugins)
