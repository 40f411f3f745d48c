"""A project's servers, as a kernel has them: in a thread of it, or in another process that serves the project."""
