"""Helpers of several test modules: small cases, devices without hardware, pytest plugins.

Test modules import from here and never from each other (tests/test_imports.py checks it).
"""

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
