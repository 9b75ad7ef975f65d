"""Calls of the command line in this process, and a small case for them."""

from click.testing import CliRunner

from mpilbm.cli import cli

CASE = """
title = "Small cavity"
[lattice]
name = "D2Q9"
[domain]
size = [12, 10]
[fluid]
reynolds = 10
length = 10
velocity = 0.05
[[boundary]]
name = "bounce_back"
where = ["x-", "x+", "y-"]
[[boundary]]
name = "bounce_back"
where = ["y+"]
velocity = [0.05, 0]
[run]
steps = 10
[[output]]
name = "snapshot"
every = 5
"""


def call(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def refused(*arguments):
    """The output of a command that must end with exit code 2 and without a traceback."""
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return result.output
