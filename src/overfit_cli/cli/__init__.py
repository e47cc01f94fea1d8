"""The command line: one module per command, assembled in `app`."""
