"""TIE on hyperplanes in time: `python examples/tie_hyte.py --help`."""

from common import run

if __name__ == "__main__":
    run("HyTE")
