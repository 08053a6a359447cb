"""What a run holds for as long as it goes on: the logs of its groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

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
        """Return the groups that it holds anything of, perhaps no entry of a log."""

    @abstractmethod
    def folder(self, group: str) -> Folder:
        """Return the folder of `group`, not made yet; raise CheckpointError if there can't be
        one."""

    @abstractmethod
    def release(self) -> None:
        """Let another run have it; may be repeated."""

    def check_groups(self, groups: Mapping[str, Collection[str]]) -> None:
        """Refuse to leave a log behind, as when a stream has got another id; `groups` has the
        streams of each group."""
        existing = self.groups()
        for group in existing:
            newest = self.log(group).newest() if group not in groups else None
            if newest is not None and newest.successor is None:
                raise CheckpointError(
                    self.where,
                    f"it has a log of the stream(s) {', '.join(newest.streams)}, up to batch "
                    f"{newest.committed}, in a group {group!r} that this topology "
                    f"does not have; its groups are: {', '.join(groups) or 'none'} (each "
                    "is named by the smallest of its stream ids)",
                    self._advice(group, newest.streams, groups, existing),
                )

    def _advice(
        self,
        group: str,
        streams: Collection[str],
        groups: Mapping[str, Collection[str]],
        existing: Collection[str],
    ) -> str:
        """What to do instead of leaving the log of `group`, which had these `streams`, behind."""
        heirs = [name for name, ours in groups.items() if not {*streams}.isdisjoint(ours)]
        if len(heirs) == 1 and heirs[0] in streams and heirs[0] not in existing:
            return (
                "Give the streams their old ids, or start with a new checkpoint and "
                f"adopt=Adopt.from_checkpoint(<this one>): the group {heirs[0]!r} goes on from "
                "that log."
            )
        if heirs:
            return (
                "Give the streams their old ids, and let the same ones share batches; another one "
                "that joins them needs an id after theirs."
            )
        return (
            "Give the streams their old ids, or start with a new checkpoint. If those streams are "
            f"no longer wanted, remove or rename {self.log(group).place}: their states keep their "
            "entries, but nothing can go on from these."
        )
