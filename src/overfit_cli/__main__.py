"""The command line as `python -m overfit_cli`."""

from __future__ import annotations

import os


def main() -> None:
    """Run the command line; Ctrl-C while its modules are imported ends it without a traceback."""
    try:
        from overfit_cli.cli import app
    except KeyboardInterrupt:
        os._exit(130)
    app.main()


if __name__ == "__main__":
    main()
