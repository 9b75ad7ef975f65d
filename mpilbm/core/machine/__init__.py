"""This machine: kernel cache, child processes, command line, terminal, imports."""
