"""Files of the user: reading them, their digests, their origin."""
