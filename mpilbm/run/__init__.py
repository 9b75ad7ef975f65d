"""The run: from a case to its results, and the criteria that end it.

Imports all lower layers except `bench`. Add another criterion that ends a run here.
"""
