"""The `bestarm` command: what it can be told to do, each in a module that is loaded when it is typed."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_group

from service import __version__

if TYPE_CHECKING:
    from typer._click import Command, Context


class Subcommand(NamedTuple):
    """Where a subcommand is, and what the program's own help says of it."""

    module: str
    help: str


SUBCOMMANDS = {
    "serve": Subcommand("service.command_line.serve_command", "Run the service and its dashboard."),
    "migrate": Subcommand("service.command_line.migrate_command", "Bring the database to the newest schema."),
    "replay": Subcommand(
        "service.command_line.replay_command",
        "Recompute every decision and every statistic of an experiment from its history; exit code 1 if anything differs.",
    ),
    "backup": Subcommand("service.command_line.keeping_commands", "Copy the embedded database into a file while it is in use."),
    "prune": Subcommand(
        "service.command_line.keeping_commands",
        "Give up the assignments, single rewards and observations of experiments that are over. What was counted stays.",
    ),
    "forget": Subcommand(
        "service.command_line.keeping_commands",
        "Replace a unit's name by a token that says nothing of it, wherever it is stored. All counts stay.",
    ),
    "simulate": Subcommand("service.simulation.simulation_commands", "Compare policies on one instance."),
    "plan": Subcommand(
        "service.simulation.plan_command", "How long an experiment will take: visitors until its verdict, and days."
    ),
    "mcp": Subcommand(
        "service.command_line.mcp_command",
        "Offer the experiments as tools to the host of a language model (MCP), on standard input and output.",
    ),
    "export": Subcommand(
        "service.command_line.export_command",
        "Write an experiment's data to a file: whole, as of one moment, or not at all. Units are personal data.",
    ),
    "import": Subcommand(
        "service.command_line.import_command",
        "Tell past data to an experiment as observations. Repeated, it counts nothing twice.",
    ),
    "experiment": Subcommand("service.command_line.experiment_commands", "One experiment as a file: dump, load."),
    "keys": Subcommand("service.command_line.api_key_commands", "Keys of the API: create, list, revoke, rotate."),
}


class _Program(TyperGroup):
    """Lists its subcommands without loading them."""

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """The one that was typed, from its module."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else loaded(name), rest


def loaded(name: str) -> Command:
    """A subcommand with its options."""
    gc.disable()  # whatever is loaded stays: looking through it for garbage takes a sixth of the time
    module = import_module(SUBCOMMANDS[name].module)
    gc.enable()
    of_module = typer.Typer()
    module.register(of_module)
    return get_group(of_module).commands[name]


app = typer.Typer(
    cls=_Program,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Find the best variant with live traffic.",
)


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer's callback
    if wanted:
        typer.echo(f"bestarm {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find the best variant with live traffic."""


def _listed() -> None:
    """Stands for a subcommand until it is loaded."""


for _name, _subcommand in SUBCOMMANDS.items():
    app.command(_name, help=_subcommand.help)(_listed)
