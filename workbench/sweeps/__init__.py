"""Runs a notebook many times, with papermill, a kernel for each run.

- `engine`: executes one notebook in a kernel of its own, within limits
- `sockets`: the sockets between a kernel and this process
- `leftovers`: ends the processes that a killed sweep has left
- `watch`: ends kernels that exceed their limits or are cancelled, and the processes they started
- `outputs`: limits the output of a run, and saves executed notebooks
- `failures`: the reason why a run did not complete, as a code and a sentence
- `execution`: one run, from its record's start to its end
- `sweep`: the runs of a sweep, several at a time, until all are done or it is interrupted
- `progress`: the progress of a sweep

It reaches the project only through operations, so that a sweep is the same in a terminal, in a notebook and on another
machine.
"""
