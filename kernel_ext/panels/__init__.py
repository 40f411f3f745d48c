"""What panels have in common. The files of a panel have the same stem (`desk.py`, `src/desk.js`, `static/desk.js`).

A panel is live only where a notebook page shows it. Elsewhere (papermill, nbval, nbconvert, a terminal) it opens no
comm and is displayed as plain tables that are the same on every run.
"""

from __future__ import annotations

import os
from pathlib import Path

from IPython.core.getipython import get_ipython

STATIC = Path(__file__).parent / "static"
"""The output of `npm run build` from `src/`."""

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class PanelClosed(Exception):
    """The page has closed the panel: nothing more can be sent to it."""


def has_frontend() -> bool:
    """Whether the running cell came from a notebook page, which can show a widget.

    JupyterLab and Notebook send the id of the cell, batch tools do not. `WORKBENCH_FRONTEND` (0 or 1) overrides.
    """
    if value := os.environ.get("WORKBENCH_FRONTEND"):
        return value.lower() not in ("0", "no", "false")
    kernel = getattr(get_ipython(), "kernel", None)
    return bool(kernel and "cellId" in (kernel.get_parent().get("metadata") or {}))


def may_have_reader() -> bool:
    """Whether a person may look at the output now: in a notebook page, or one that shows no widgets (nbclassic).

    A Jupyter Server names the session of its kernels; batch tools have none.
    """
    return has_frontend() or ("JPY_SESSION_NAME" in os.environ and "WORKBENCH_FRONTEND" not in os.environ)
