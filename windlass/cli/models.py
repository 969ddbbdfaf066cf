"""`windlass models`: which models can be used, what they cost, and what to do to use others."""

import os
import sys
from pathlib import Path

import click

from windlass import config, limits
from windlass.cli.connection import run_async
from windlass.cli.model_report import ModelRow, Report, make_report
from windlass.cli.options import json_option
from windlass.cli.progress import working
from windlass.cli.safe_text import exact
from windlass.cli.terminal import Terminal


@click.command()
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="The config file to look at.")
@click.option("--check", is_flag=True, help="Ask the providers whether they take their keys and have the models.")
@json_option
def models(config_file: Path | None, check: bool, as_json: bool) -> None:
    """Show the models that can be used, with what fits into them and what they cost.

    Model servers on this machine are looked for, and nobody else is asked anything without --check. With it, the exit
    code is 1 when the provider of the default model cannot be used.

    \b
    Examples:
      windlass models
      windlass models --check --json
    """
    try:
        settings = config.load(config_file)
    except config.ConfigError as error:
        raise click.ClickException(str(error)) from None
    with working("Asking the providers" if check else "Looking for model servers on this machine"):
        report = run_async(make_report(settings, dict(os.environ), check=check))
    terminal = Terminal()
    if as_json:
        terminal.json(report)
    else:
        _print(terminal, report, settings, config_file or config.default_config_file())
    chosen = settings.model.partition("/")[0]
    if check and not all(row.usable for row in report.providers if row.name == chosen):
        sys.exit(1)


def _print(terminal: Terminal, report: Report, settings: config.Config, file: Path) -> None:
    if report.models:
        header = ["MODEL", "TYPE", "CONTEXT", "OUTPUT", "PRICE", "CACHE", "CAN", "NOTE"]
        terminal.table(header, [_cells(row) for row in report.models])
    if any(row.input_price is not None for row in report.models):
        terminal.line()
        terminal.line(
            f"Prices: US dollars per million tokens, in / out, and cache read / write. Table of {report.prices_of}."
        )
        if any(row.dearer_above for row in report.models):
            terminal.line("A + after a price: long prompts cost more there than is counted (docs/models.md).")
    for provider in report.providers:
        if not provider.usable:
            terminal.line(f"Cannot be used: {exact(provider.name)}. {exact(provider.says)}")
        elif provider.says:
            terminal.line(exact(provider.says))
    _print_local(terminal, report, settings, file)
    if settings.model == "scripted/demo":
        terminal.line()
        terminal.line("For a hosted model set ANTHROPIC_API_KEY or OPENAI_API_KEY, or choose one in the config:")
        terminal.line('  model = "deepseek/deepseek-flash"      (and DEEPSEEK_API_KEY in the environment)')


def _cells(row: ModelRow) -> list[str]:
    price = "-"
    if row.input_price is not None and row.output_price is not None:
        price = f"{row.input_price:g} / {row.output_price:g}{' +' if row.dearer_above else ''}"
    cache = "-"
    if row.cache_read_price is not None:
        written = "-" if row.cache_write_price is None else f"{row.cache_write_price:g}"
        cache = f"{row.cache_read_price:g} / {written}"
    can = " ".join(word for word, does in (("images", row.images), ("thinks", row.reasoning)) if does)
    notes = [row.use] if row.use else []
    if not row.known:
        notes.append("unknown: defaults")
    cells = [exact(row.model), row.type, _tokens(row.context_window), _tokens(row.default_max_tokens), price, cache]
    return [*cells, can or "-", ", ".join(notes)]


def _tokens(count: int) -> str:
    return f"{count / 1000:.0f}k" if count >= 10_000 else str(count)


def _print_local(terminal: Terminal, report: Report, settings: config.Config, file: Path) -> None:
    used = {provider.base_url.rstrip("/") for provider in settings.providers.values()}
    for server in report.local:
        shown = ", ".join(server["models"][: limits.LOCAL_MODELS_SHOWN]) or "no models yet"
        more = len(server["models"]) - limits.LOCAL_MODELS_SHOWN
        what = "wants a key" if server["wants_key"] else f"has {shown}{f' and {more} more' if more > 0 else ''}"
        terminal.line()
        terminal.line(f"{exact(server['title'])} answers at {server['base_url']} and {exact(what)}.")
        if server["base_url"] in used:
            terminal.line("The config uses it already.")
            continue
        terminal.line(f"To use it, put this into {exact(str(file))}, the first line above every [section]:")
        terminal.line()
        for line in server["config"].splitlines():
            terminal.line(f"  {exact(line)}".rstrip())
    if not report.local:
        terminal.line()
        terminal.line(
            "No model server answers on this machine (Ollama, llama.cpp, vLLM, LM Studio at their usual ports)."
        )
