"""Pages in HTML about a run and about measurements of speed."""
