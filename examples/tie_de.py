"""TIE with diachronic embeddings (DE). Usage: `python examples/tie_de.py --help`."""

from common import run

if __name__ == "__main__":
    run("DE")
