"""A whole project in one file: `back_up` makes an archive of it, and `restore` a project, or its state, of that.

An archive is a ZIP file with a manifest, the store as a file of SQLite, the repository's references and their commits
as a git bundle, and files of the state directory. It has no secrets: no key, no token, no variables of agents.
"""
