"""`python -m overfit_cli` is `overfit`."""

from overfit_cli.cli.app import main

if __name__ == "__main__":
    main()
