"""The manual, which is installed with the program."""
