"""Executes the runs of a sweep on a Dask cluster.

- `worker`: the part in each of its workers: the same `execute_run` as in a sweep without Dask
- `executor`: hands runs to the workers, and receives their reports
- `project_copy`, `copied`, `carrier`: for workers that do not see the project's directory: its files, the part in such
  a worker, and the part here, which alone reaches the store

Workers that see the project, at the same path, report each run to its server themselves. Dask decides which worker
executes a run, and gives it to another one if that worker dies; the run's record decides whether it is executed at all.
Nothing imports `distributed` before a sweep asks for it.
"""
