"""Commands as Typer runs them: strict when they run, lenient while a shell completes them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from typer.core import TyperCommand, TyperOption

from overfit_cli.cli.parameter_completion import parameter_options
from overfit_cli.errors import UserError


class Command(TyperCommand):
    """A command that refuses an option given twice, if it takes one value.

    While a shell completes a command line, it takes what is there, and offers the parameters of
    the study too.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line.

        Raises:
            UserError: if an option is given twice.
        """
        if ctx.resilient_parsing:
            return super().parse_args(ctx, self._without_last_option(args))
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for one, times in Counter(given).items():
            if times < 2 or not isinstance(one, TyperOption) or one.multiple:
                continue
            if one.secondary_opts:
                raise UserError(f"{one.opts[-1]} and {one.secondary_opts[-1]}: give one, once.")
            if not one.is_flag:
                raise UserError(f"{one.opts[-1]} is given {times} times; give it once.")
        return super().parse_args(ctx, args)

    def _without_last_option(self, args: list[str]) -> list[str]:
        """The words without an option at their end that lacks its value: it would undo the rest."""
        options = [one for one in self.params if isinstance(one, TyperOption) and not one.is_flag]
        lacks = args[-1:] and any(args[-1] in one.opts for one in options)
        return args[:-1] if lacks else args

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the options that begin so, and the parameters of the study that do."""
        return [
            *super().shell_complete(ctx, incomplete),
            *parameter_options(ctx, incomplete),
        ]
