"""The class of the commands: a help that fits a screen, and one with every option."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperOption


class Command(TyperCommand):
    """A command whose ``-h`` shows the common options, and ``--help-all`` all of them.

    Options declared as hidden are left to ``--help-all``, for which such a command has the
    parameter :data:`HelpAll`. Its ``-h`` shows the first clause of an option's help, and no
    headings.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.help = re.sub(r"(?<!\n)\n(?!\n)", " ", self.help or "")
        self._rare = [option for option in self._options() if option.hidden]
        for option in self._rare:
            option.hidden = False  # completion proposes them

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the common options if some are rare, else all."""
        if self._rare:
            for option in self._options():
                option.hidden = option in self._rare
                option.help = re.split(r"[.;] ", option.help or "")[0].rstrip(".") + "."
                option.rich_help_panel = None
        self._format(ctx, formatter)

    def show_all(self, ctx: Any) -> None:
        """Print the help with all options."""
        formatter = ctx.make_formatter()
        self._format(ctx, formatter)
        typer.echo(formatter.getvalue(), nl=False)

    def _format(self, ctx: Any, formatter: Any) -> None:
        """Format the help, with defaults on the line of what they belong to."""
        for option in self._options():
            if option.is_flag and option.default is False:  # neither a type nor --no-...
                option.metavar, option.secondary_opts = "", []
            else:
                option.help = (option.help or "") + _shown_default(option)
            option.show_default = False
        super().format_help(ctx, formatter)

    def _options(self) -> list[TyperOption]:
        return [each for each in self.params if isinstance(each, TyperOption)]


def _show_all(context: typer.Context, asked: bool) -> None:
    command = context.command
    if asked and isinstance(command, Command):
        command.show_all(context)
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option("--help-all", is_eager=True, callback=_show_all, help="Show all options."),
]


def _shown_default(option: TyperOption) -> str:
    given = option.show_default
    default = given if isinstance(given, str) else option.default
    if not given or default in (None, "") or callable(default):
        return ""
    text = str(default).lower() if isinstance(default, bool) else str(default)
    return rf" [dim]\[{escape(text)}][/dim]"
