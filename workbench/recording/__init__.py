"""Recording of runs from notebooks and scripts, through the project's server or else its store.

from workbench import Recorder

recorder = Recorder()
with recorder.run("baseline", lr=0.1) as run:
    run.record(loss=0.5)
"""

from workbench.recording.active_run import ActiveRun
from workbench.recording.recorder import Recorder

__all__ = ["ActiveRun", "Recorder"]
