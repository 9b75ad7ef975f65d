"""The chapters of the manual that `tools/manual` generates."""
