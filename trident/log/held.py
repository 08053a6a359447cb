"""What a run holds for as long as it goes on: the logs of its groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from trident.log.errors import CheckpointError
from trident.log.folders import Folder
from trident.log.log import Log


class HeldCheckpoint(ABC):
    """A checkpoint, held by one run from construction to :meth:`release`."""

    where: str
    """How errors name it."""

    @abstractmethod
    def log(self, group: str) -> Log:
        """Return the log of `group`."""

    @abstractmethod
    def groups(self) -> list[str]:
        """Return the groups of which something is there, perhaps no entry of a log."""

    @abstractmethod
    def folder(self, group: str) -> Folder:
        """Return the folder of `group`, not made yet; raise CheckpointError where there is none."""

    @abstractmethod
    def release(self) -> None:
        """Let another run have it; may be repeated."""

    @abstractmethod
    def _to_leave(self, group: str) -> str:
        """What to do with the log of a group that is gone for good."""

    def check_groups(self, groups: Iterable[str]) -> None:
        """Refuse to leave a log behind, as a topology would whose stream has got another id."""
        ours = dict.fromkeys(groups)
        for group in self.groups():
            newest = self.log(group).newest() if group not in ours else None
            if newest is not None and newest.successor is None:
                raise CheckpointError(
                    self.where,
                    f"it has a log of the stream(s) {', '.join(newest.streams)}, up to batch "
                    f"{newest.committed}, in a group {group!r} that this topology "
                    f"does not have; its groups are: {', '.join(ours) or 'none'} (each "
                    "is named by the smallest of its stream ids)",
                    "Give the streams their old ids, or start with a new checkpoint. Where those "
                    f"streams are gone for good, {self._to_leave(group)}: what their states hold "
                    "stays in its store, but nothing goes on from there.",
                )
