"""What any program needs of its system: files, locks, interrupts, an event loop in a thread."""
