"""Small pictures, written as SVG by hand."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

COLOURS = {"Adelie": "#c4772c", "Chinstrap": "#7d6aa8", "Gentoo": "#2f8585"}
INK, MUTED, FAINT = "#333333", "#6b6b6b", "#e6e6e6"
WIDTH, HEIGHT = 660, 420
LEFT, RIGHT, TOP, BOTTOM = 76, 20, 72, 56
PER_LETTER = 7.2  # about how wide a letter is at the size of the legend

Interval = tuple[float, float]
Attributes = dict[str, Any]


class Chart:
    """A title, a legend and a plot whose marks are placed in the units of the data."""

    def __init__(self, title: str, x: Interval, y: Interval) -> None:
        self.title, self.x, self.y = title, x, y
        self._parts: list[str] = []
        self._put_text(LEFT, 26, title, size=16, weight=600)

    def x_axis(self, label: str, ticks: Iterable[float]) -> None:
        for tick in ticks:
            self.line([(tick, self.y[0]), (tick, self.y[1])], FAINT, width=1)
            self._put_text(self._px(tick), HEIGHT - BOTTOM + 18, f"{tick:g}", "middle", MUTED)
        self._put_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, label, "middle")

    def y_axis(self, label: str, ticks: Mapping[float, str]) -> None:
        """Ticks with their texts, and a label that reads upwards."""
        for tick, text in ticks.items():
            self.line([(self.x[0], tick), (self.x[1], tick)], FAINT, width=1)
            self._put_text(LEFT - 8, self._py(tick) + 4, text, "end", MUTED)
        x, y = 20, (TOP + HEIGHT - BOTTOM) / 2
        self._put_text(x, y, label, "middle", turn=f"rotate(-90 {x} {y})")

    def legend(self, entries: Mapping[str, str]) -> None:
        """Texts and their colours, in one line under the title."""
        x = float(LEFT)
        for text, colour in entries.items():
            self._put("rect", x=x, y=42, width=11, height=11, rx=2, fill=colour)
            self._put_text(x + 17, 52, text)
            x += 17 + PER_LETTER * len(text) + 16

    def dot(self, x: float, y: float, colour: str) -> None:
        place: Attributes = {"cx": self._px(x), "cy": self._py(y), "r": 3.2}
        self._put("circle", **place, fill=colour, fill_opacity=0.55)

    def line(
        self, points: Sequence[Interval], colour: str, *, width: float = 2.5, dashes: str = "none"
    ) -> None:
        places = " ".join(f"{self._px(x):.1f},{self._py(y):.1f}" for x, y in points)
        stroke: Attributes = {"stroke": colour, "stroke_width": width, "stroke_dasharray": dashes}
        self._put("polyline", points=places, fill="none", **stroke)

    def bar(self, x: Interval, y: Interval, colour: str) -> None:
        (left, right), (bottom, top) = map(self._px, x), map(self._py, y)
        place: Attributes = {"x": left, "y": top, "width": right - left, "height": bottom - top}
        self._put("rect", **place, fill=colour, stroke="#ffffff")

    def text(self, x: float, y: float, text: str, *, anchor: str, colour: str = INK) -> None:
        """Text whose middle line is at y."""
        self._put_text(self._px(x), self._py(y) + 4.5, text, anchor, colour)

    def svg(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" role="img" '
            'font-family="Helvetica, Arial, sans-serif">'
        )
        name = f"<title>{escape(self.title)}</title>"
        paper = '<rect width="100%" height="100%" fill="#ffffff"/>'
        return "\n".join([head, name, paper, *self._parts, "</svg>", ""])

    def _px(self, x: float) -> float:
        low, high = self.x
        return LEFT + (x - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def _py(self, y: float) -> float:
        low, high = self.y
        return HEIGHT - BOTTOM - (y - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def _put_text(
        self,
        x: float,
        y: float,
        text: str,
        anchor: str = "start",
        colour: str = INK,
        *,
        size: int = 13,
        weight: int = 400,
        turn: str = "none",
    ) -> None:
        font: Attributes = {"font_size": size, "font_weight": weight, "text_anchor": anchor}
        self._put("text", escape(text), x=x, y=y, fill=colour, transform=turn, **font)

    def _put(self, tag: str, content: str = "", **attributes: Any) -> None:
        given = {k: v for k, v in attributes.items() if v != "none" or k == "fill"}
        listed = " ".join(f'{k.replace("_", "-")}="{_show(v)}"' for k, v in given.items())
        self._parts.append(f"<{tag} {listed}>{content}</{tag}>")


def _show(value: str | float) -> str:
    return value if isinstance(value, str) else f"{round(value, 2):g}"
