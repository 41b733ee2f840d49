"""What opens files, archives and folders for the formats. I/O; formats themselves are pure."""
