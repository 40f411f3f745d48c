"""The standard reports. `STANDARD` is the only list of them."""

from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.standard.approvals import APPROVALS
from workbench.analytics.reports.standard.comparison import COMPARISON
from workbench.analytics.reports.standard.critical_path import CRITICAL_PATH
from workbench.analytics.reports.standard.failures import FAILURES
from workbench.analytics.reports.standard.gantt import GANTT
from workbench.analytics.reports.standard.gates import GATES
from workbench.analytics.reports.standard.lead_times import LEAD_TIMES
from workbench.analytics.reports.standard.leases import LEASES
from workbench.analytics.reports.standard.overview import TASKS, TOTALS
from workbench.analytics.reports.standard.processes import PROCESSES
from workbench.analytics.reports.standard.projects import PROJECTS
from workbench.analytics.reports.standard.runs import RUNS
from workbench.analytics.reports.standard.throughput import THROUGHPUT
from workbench.analytics.reports.standard.tokens import TOKENS
from workbench.analytics.reports.standard.tools import TOOL_SOURCES, TOOLS
from workbench.analytics.reports.standard.utilisation import UTILISATION
from workbench.analytics.reports.standard.waits import WAITS

STANDARD: dict[str, Standard] = {
    one.name: one
    for one in (
        *(
            APPROVALS,
            COMPARISON,
            CRITICAL_PATH,
            FAILURES,
            GANTT,
            GATES,
            LEAD_TIMES,
            LEASES,
            PROCESSES,
            PROJECTS,
            RUNS,
            TASKS,
        ),
        *(THROUGHPUT, TOKENS, TOOLS, TOOL_SOURCES, TOTALS, UTILISATION, WAITS),
    )
}
