"""The parts of tools/mutation_check: faults, the tests of a fault, and runs of these tests."""
