"""How the pictures look: two themes, two sizes, one accent for the arm that leads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ThemeName: TypeAlias = Literal["light", "dark"]
SizeName: TypeAlias = Literal["small", "large"]


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours. `others` are for the arms behind the leader, in the order of their positions."""

    paper: str
    ink: str
    muted: str
    grid: str
    faint: str
    accent: str
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChartStyle:
    """A theme at a width."""

    theme: Theme
    width: int
    height: int
    left: int
    right: int
    """Space for the labels on either side."""
    utc_offset: int = 0
    """Minutes that the clock of the picture's times is ahead of UTC."""

    @property
    def plot(self) -> tuple[float, float]:
        """Where the plot begins and ends, from left to right."""
        return float(self.left), float(self.width - self.right)


_THEMES: dict[ThemeName, Theme] = {
    "light": Theme(
        paper="#ffffff",
        ink="#16191b",
        muted="#5c6468",
        grid="#e8e9e7",
        faint="#c3c8ca",
        accent="#0b7268",
        others=("#b3651a", "#5b5fa8", "#9c3d63", "#4d7a1f"),
    ),
    "dark": Theme(
        paper="#171b1d",
        ink="#eceeee",
        muted="#9ba5a9",
        grid="#282e31",
        faint="#4a5357",
        accent="#4fd0bd",
        others=("#e0a25f", "#a3a7ec", "#e18aae", "#a5cf6d"),
    ),
}


def style_for(theme: ThemeName, size: SizeName, utc_offset: int = 0) -> ChartStyle:
    """The style by the names of its theme and its size, with the clock of its times."""
    if size == "small":
        return ChartStyle(_THEMES[theme], width=360, height=260, left=44, right=100, utc_offset=utc_offset)
    return ChartStyle(_THEMES[theme], width=640, height=300, left=52, right=160, utc_offset=utc_offset)
