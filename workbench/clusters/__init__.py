"""Clusters on which sweeps are executed: what they have, and the connection to them.

- `dask`: a Dask cluster that runs, or one of this machine
- `slurm`: jobs of Slurm that form a Dask cluster, by dask-jobqueue
- `facts`: what a cluster of the settings has and lacks

Nothing imports `distributed` before it is asked for.
"""
