"""What the backend `cuda` consists of: driver, launches, graphs, and the moment sweep."""
