"""Makes `python -m pairlens.cli` the same as `pairlens`."""

from pairlens.cli import main

if __name__ == "__main__":
    main()
