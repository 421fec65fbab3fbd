"""Training examples for the roles."""

from training.roles.data.mix import read_all, write_lines
from training.roles.data.teacher import Example

__all__ = ["Example", "read_all", "write_lines"]
