"""Background jobs: a process and a folder each."""
