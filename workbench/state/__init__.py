"""The files of a project and its user: the root, settings, the running server, the processes that share it."""
