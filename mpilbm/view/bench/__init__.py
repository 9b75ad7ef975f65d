"""Speed, start-up and scaling: `mpilbm bench`, its boxes and its reports.

The topmost layer below the command line.
"""
