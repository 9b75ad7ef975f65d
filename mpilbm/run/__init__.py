"""The run: from a case to its results, and what ends it.

Imports all lower layers except `bench`. Add another criterion that ends a run here.
"""
