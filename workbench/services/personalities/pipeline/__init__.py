"""The pipeline of knowledge (spec 5, 6): RID, Manifest, Bundle, Network, Final. `run.handle` is its entrance."""
