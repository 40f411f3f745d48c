"""Sweeps: one notebook, run once for each combination of values.

- `values`: the values of a parameter as they are typed: `1,2`, `1..50`, `0..1:0.25`
- `specification`: what a sweep runs, and the same as a YAML file
- `grid`: the runs of a specification, and the key that identifies each
- `notebook`: the parameters that a notebook declares, its content hash, and the check of values against both
"""
