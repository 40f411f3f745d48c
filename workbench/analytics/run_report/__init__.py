"""A page about runs that needs no server and no network: `workbench runs report 3 4 --html FILE`."""

from workbench.analytics.run_report.charts import parallel_coordinates
from workbench.analytics.run_report.page import page

__all__ = ["page", "parallel_coordinates"]
