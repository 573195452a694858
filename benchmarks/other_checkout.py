"""Another checkout's code at work in a process of its own, which waits for its turns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


class Checkout:
    """A program that runs in a checkout's folder, with its interpreter if it has one: a line in, a number out."""

    def __init__(self, folder: Path, program: str) -> None:
        python = folder / ".venv/bin/python"
        command = [str(python) if python.exists() else sys.executable, "-c", program]
        self._process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line: str) -> float:
        """What the program answers to this line."""
        orders, answers = self._process.stdin, self._process.stdout
        if orders is None or answers is None:
            raise RuntimeError("The other checkout's process has no pipes.")
        orders.write(line + "\n")
        orders.flush()
        return float(answers.readline())

    def end(self) -> None:
        """No more turns."""
        self._process.communicate()
