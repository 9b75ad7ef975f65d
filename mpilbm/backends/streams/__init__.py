"""The streams of a device and the events in them."""
