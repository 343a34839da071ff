"""`python -m pairlens.cli` is `pairlens`."""

from pairlens.cli import main

if __name__ == "__main__":
    main()
