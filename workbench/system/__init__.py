"""System facilities that any program needs: files, locks, interrupts, an event loop in a thread."""
