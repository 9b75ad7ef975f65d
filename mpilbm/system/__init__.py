"""Terminal, command-line options, child processes, kernel cache, and reading of user files.

Imports only the top-level modules `errors`, `units`, `printable` and `registry`. Add a module here
for another service of the operating system, or for another format of files from any source.
"""
