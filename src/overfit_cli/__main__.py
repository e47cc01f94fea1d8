"""The command line as `python -m overfit_cli`."""

from __future__ import annotations

from overfit_cli.cli.app import main

if __name__ == "__main__":
    main()
