"""TIE with hyperplanes in time (HyTE). Usage: `python examples/tie_hyte.py --help`."""

from common import run

if __name__ == "__main__":
    run("HyTE")
