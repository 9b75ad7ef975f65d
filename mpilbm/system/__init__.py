"""Terminal, command-line options, child processes, kernel cache, and files of the user.

Imports only the top-level modules `errors`, `units`, `printable` and `registry`. Add a module here
when the program needs something else from the operating system, or must read a file from any
source.
"""
