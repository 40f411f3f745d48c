"""The surroundings of a run, and its notebook or script, as far as this process can tell."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

from workbench.process.packages import versions

NOTEBOOK = ("JPY_SESSION_NAME", "__vsc_ipynb_file__")
"""The names under which Jupyter Server (environment) and Visual Studio Code (notebook's names) give the notebook."""


def environment() -> dict[str, Any]:
    """The Python, the platform, and the versions of the packages that are imported."""
    packages = versions(name for name in list(sys.modules) if name.partition(".")[0] not in sys.stdlib_module_names)
    return {"python": platform.python_version(), "platform": platform.platform(), "packages": packages}


def notebook(project: Path) -> str | None:
    """The path of the notebook or script, relative to the project if it is in it; None: unknown."""
    main = sys.modules.get("__main__")
    name = os.environ.get(NOTEBOOK[0]) or getattr(main, NOTEBOOK[1], None) or getattr(main, "__file__", None)
    if not name:
        return None
    path = Path(name)
    return str(path.relative_to(project)) if path.is_relative_to(project) else str(path)
