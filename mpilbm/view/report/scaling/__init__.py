"""The page of measurements of scaling."""
