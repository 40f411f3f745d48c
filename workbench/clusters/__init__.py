"""Clusters on which sweeps are executed and agents spawned: what they have, and the connection to them.

- `dask`: a Dask cluster that runs, or one of this machine
- `slurm`: jobs of Slurm that form a Dask cluster, by dask-jobqueue
- `facts`: what a cluster of the settings has and lacks
- `over_dask`, `remote_agent`: an agent on a cluster: its process here, and its task there

Nothing imports `distributed` before it is asked for.
"""
