"""Rules of tasks: the lifecycle, and plans as text."""
