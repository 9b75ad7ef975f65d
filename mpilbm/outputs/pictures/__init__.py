"""Pictures and films of the output `picture`."""
