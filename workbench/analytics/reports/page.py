"""A report as a web page that needs no server and no network: the drawing and the table are in it.

Alone: its stylesheet lies beside it.
"""

from __future__ import annotations

from pathlib import Path

from workbench.present.inert import as_html

STYLE = Path(__file__).with_suffix(".css")


def page(title: str, sentence: str, drawing: str, table: str) -> str:
    """The page.

    Args:
        drawing: SVG, or nothing; table: HTML.
    """
    style = STYLE.read_text("utf-8")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{as_html(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>\n{style}</style>\n</head>\n<body>\n'
        f"<h1>{as_html(title)}</h1>\n<p>{as_html(sentence)}</p>\n<figure>{drawing}</figure>\n{table}\n</body>\n</html>\n"
    )
