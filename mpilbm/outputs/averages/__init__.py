"""The files of the output `statistics`."""
