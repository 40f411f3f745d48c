"""What a run runs on, and which notebook or script it is, as far as this process can tell."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

from workbench.process.packages import versions

NOTEBOOK = ("JPY_SESSION_NAME", "__vsc_ipynb_file__")
"""Where Jupyter Server (in the environment) and Visual Studio Code (in the notebook's names) name the notebook."""


def environment() -> dict[str, Any]:
    """The Python, the platform, and the versions of the packages that are imported."""
    packages = versions(name for name in list(sys.modules) if name.partition(".")[0] not in sys.stdlib_module_names)
    return {"python": platform.python_version(), "platform": platform.platform(), "packages": packages}


def notebook(project: Path) -> str | None:
    """The path of the notebook or script, relative to the project if it is in it; None: unknown."""
    main = sys.modules.get("__main__")
    named = os.environ.get(NOTEBOOK[0]) or getattr(main, NOTEBOOK[1], None) or getattr(main, "__file__", None)
    if not named:
        return None
    path = Path(named)
    return str(path.relative_to(project)) if path.is_relative_to(project) else str(path)
