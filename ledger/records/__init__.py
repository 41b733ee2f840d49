"""What is written down: ids, times, values, and the bytes of one line. Pure; no I/O."""
