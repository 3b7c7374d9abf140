"""A table of results with its pictures: a section of a page, and files of its own."""

from __future__ import annotations

from dataclasses import dataclass

from unblur.paper.sheets import Sheet
from unblur.pictures.style import Picture


@dataclass(frozen=True)
class Section:
    """A table with its pictures, and the files it is also written to."""

    sheet: Sheet
    drawn: tuple[Picture, ...] = ()
    folder: str = "tables"
    folded: bool = False

    @property
    def pictures(self) -> list[str]:
        """The pictures, to be put on a page."""
        return [picture.svg() for picture in self.drawn]

    @property
    def files(self) -> list[str]:
        """The files it is written to."""
        return list(self.contents())

    def contents(self) -> dict[str, bytes]:
        """Every file, with what is to stand in it."""
        start = f"{self.folder}/{self.sheet.name}"
        found = {f"{start}.csv": self.sheet.to_csv().encode(), f"{start}.md": self.sheet.to_markdown().encode()}
        for picture in self.drawn:
            found |= {f"{self.folder}/{picture.name}.svg": picture.svg().encode()}
            found |= {f"{self.folder}/{picture.name}.png": picture.png()}
        return found
