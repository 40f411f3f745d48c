"""Runs a notebook many times, with papermill, a kernel for each run.

- `engine`: executes one notebook in a kernel of its own, within limits
- `sockets`: between a kernel and this process
- `leftovers`: ends what a sweep that was killed has left
- `watch`: ends kernels that exceed their limits or are cancelled, and what they started
- `outputs`: keeps what a run prints small, and saves executed notebooks
- `failures`: why a run did not complete, as a code and a sentence
- `records`: how runs are recorded: the operations that a sweep calls
- `execution`: one run, from its record's start to its end
- `sweep`: the runs of a sweep, several at a time, until all are done or it is interrupted
- `progress`: how far a sweep is

It reaches the project only through operations, so that a sweep is the same in a terminal, in a notebook and on another
machine.
"""
