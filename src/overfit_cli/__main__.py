"""The command line as `python -m overfit_cli`."""

from __future__ import annotations

import os


def main() -> None:
    """Run the command line; Ctrl-C before or after its own answer ends it without a traceback."""
    try:
        import signal

        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # as it is in a shell's background
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # an import may lose an exception
            from overfit_cli.core.processes import interrupt_or_end

            signal.signal(signal.SIGINT, interrupt_or_end)
        from overfit_cli.cli import app

        try:
            app.main()
        finally:
            # All is done: what Python still has to end is not worth a traceback.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        os._exit(130)


if __name__ == "__main__":
    main()
