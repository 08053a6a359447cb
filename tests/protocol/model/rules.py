"""The rules of the protocol, each of which can be taken out, and the settings it runs in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Ability = Literal["fenced", "entry", "versioned", "none", "rows"]
Harm = Literal["", "failover", "rewind", "restore", "lose", "wipe", "forget", "copy", "cut", "anew"]


@dataclass(frozen=True)
class Rules:
    """One field a rule; False takes the rule out of the model.

    Examples
    --------
    >>> Rules().without("fence").fence
    False
    """

    # The log.
    exclusive: bool = True
    """A file of the log is created exclusively, never replaced."""
    own_entry: bool = True
    """A writer appends only directly after an entry of its own, in a file of its own."""
    begin_first: bool = True
    """A newcomer first appends a begin of its own, with an attempt of its own."""
    claim_first: bool = True
    """A newcomer makes its file before it reads for the last time what it goes on from."""
    listing: bool = True
    """An append counts only if a listing after it shows no higher file."""
    place: bool = True
    """A batch that the log has committed is skipped when its source asks for it again."""
    new_attempt: bool = True
    """Every time a batch is processed again, it is another attempt."""
    retried_kept: bool = True
    """The committed attempts that were not 0 are never forgotten."""
    swept: bool = True
    """A batch before which all others are forgotten has rewritten what failed attempts left."""
    dead_letter: bool = True
    """A batch is given up as an attempt of its own that updates no state."""
    planned: bool = True
    """What a transactional batch holds is in the log before any state is written."""
    discard: bool = True
    """A batch that was emitted ahead is emitted anew where the attempt before it has failed."""

    # Staged batches.
    staged_first: bool = True
    """A batch is staged before any state is written."""
    staged_told: bool = True
    """A batch is staged before its source is told that it needn't come again."""
    staged_kept: bool = True
    """What is staged is removed after the commit, not before."""
    staged_recovered: bool = True
    """A driver that starts commits what is staged, before any other batch."""
    staged_claim: bool = True
    """A staged file is named by the claim of its run, so no driver replaces another's."""
    staged_highest: bool = True
    """Of the files of a batch, the one with the highest claim counts."""
    staged_listed: bool = True
    """A driver that starts lists what is staged after its begin is in the log."""
    staged_again: bool = True
    """A driver that starts stages what it finds under its own claim, before it goes on."""
    staged_left: bool = True
    """The files of others stay until their batch is committed."""
    staged_held: bool = True
    """A driver reads the log once more after it has staged a batch, before it writes a state."""
    staged_replay: bool = True
    """A batch that its source gives again has to end where it ended."""
    staged_before: bool = True
    """A driver's first batch goes on only from where the batch before has ended."""
    staged_follows: bool = True
    """So does a batch that it finds staged."""

    # The control record.
    begin_compared: bool = True
    """Begin replaces only the record it has read, and never a later token."""
    begin_every_state: bool = True
    """Every batch begins and announces at every state of its group, written there or not."""
    log_id: bool = True
    """Begin refuses the record of another log."""
    abandoned_unready: bool = True
    """Of another log's states, only one is begun in which no batch was ever made ready."""
    abandoned_behind: bool = True
    """Such a state is begun behind the attempt that the other log has begun there."""
    abandoned_opaque: bool = True
    """Such a state is begun only where what an attempt has written can be undone."""
    lost: bool = True
    """Begin refuses a listed state that has no record."""
    rewound: bool = True
    """Begin refuses a listed state whose token is older than the listed one."""
    looked_first: bool = True
    """A batch that reads before it begins has looked at the server before it reads."""
    ready: bool = True
    """Before the commit every state confirms that it is the server that the batch began at."""
    mark: bool = True
    """An attempt's last write at a state marks its record as ready, before that look."""
    lost_writes: bool = True
    """A batch that the log has committed and whose record isn't marked has lost writes."""
    same_plan: bool = True
    """A state in which a transactional batch has begun is gone on with by the same plan only."""
    other_copy: bool = True
    """A record that this log can't have written is that of another copy of the log."""
    never_begun: bool = True
    """So is that of an attempt which the log has committed without beginning the state."""
    announce_own: bool = True
    """Announcing changes only the record that this batch began."""
    announce_at_start: bool = True
    """A driver that starts announces what the log has committed."""

    # Writing.
    fence: bool = True
    """A fenced store compares the control record with the writer's in the step that writes."""
    equality: bool = True
    """The fence asks for an equal token; an absent or older one refuses too."""
    fence_log_id: bool = True
    """The fence asks for an equal log id too."""
    entry: bool = True
    """A store conditional on entries writes only over the entry that was read."""
    recompute: bool = True
    """After a conflict the entry is read again and the update computed again."""
    highest: bool = True
    """A versioned store shows the highest token, whichever write came last."""
    checked: bool = True
    """A store that can do nothing of it checks the token before it writes."""
    attempts: bool = True
    """A value carries its attempt, and only the committed attempt of a batch counts."""
    overtaken: bool = True
    """A value of a later token stops the task that reads it."""
    committed_prev: bool = True
    """What a value keeps as `prev` is the committed value it was computed from."""
    applied: bool = True
    """A transactional value of this very batch is not updated again."""
    once: bool = True
    """A task writes each key once, all its updates folded."""
    one_updater: bool = True
    """A state has one updating node."""
    tombstones: bool = True
    """A removal writes a tombstone; only a fenced store drops it, once it is committed."""

    # What expires.
    expired_committed: bool = True
    """What has expired follows from the times of committed batches, whatever else was tried."""
    expired_before: bool = True
    """A sweep removes what had expired with the batch before, not with its own."""
    expired_own: bool = True
    """A sweep leaves what its own attempt has written."""
    expired_fenced: bool = True
    """A sweep removes under the fence, as the key may have come back."""

    # Rows of a table.
    rows_own_id: bool = True
    """Each run of a task marks the rows that it stages with an id of its own."""
    rows_named: bool = True
    """Only rows of those runs are merged whose success the driver has seen."""
    rows_counted: bool = True
    """An attempt is ready only if all rows are staged that its record names."""
    rows_logged: bool = True
    """Rows are merged after the log has the batch, not before."""
    rows_listed: bool = True
    """Rows are merged only of the very attempt that the log has committed at this state."""
    rows_with_record: bool = True
    """Rows are merged in the transaction that puts the announced record."""
    rows_locked: bool = True
    """That transaction goes by the record that it has locked, not by one that was read before."""
    rows_merged_first: bool = True
    """Before a batch begins what the log has committed is merged, if it isn't any more."""
    rows_emptied_with_record: bool = True
    """A begin removes what is staged in the transaction that puts its record, not after it."""
    rows_together: bool = True
    """Tables of one database are merged in one transaction."""

    together_own_entry: bool = True
    """A log in the tables' database writes an entry only directly after one of the same driver, or
    after the one that it has read, in the step that looks; so does the transaction of the merge."""

    # Caches.
    cache_validity: bool = True
    """A cached entry feeds only a conditional write, or the one process that writes the state."""
    write_then_cache: bool = True
    """A value is cached after its write has succeeded, and dropped when that failed."""
    cache_of_earlier_batches: bool = True
    """An entry of the batch that is being processed is read again, not taken from the cache."""

    # Readers.
    one_cut: bool = True
    """All states of a query are read as of one committed batch."""
    control_first: bool = True
    """A reader takes the control records before the keys."""
    restart: bool = True
    """A reader that meets a value from beyond the next batch starts again."""
    recheck: bool = True
    """Where tombstones are dropped, a reader starts again if the next batch has ended meanwhile."""

    def without(self, rule: str) -> Rules:
        """The same rules with one of them taken out."""
        return replace(self, **{rule: False})


@dataclass(frozen=True)
class Setup:
    """What a run of the model is about.

    Parameters
    ----------
    ability : {"fenced", "entry", "versioned", "none", "rows"}
        What the two stores can do; "rows" are tables of users.
    kind : {"opaque", "transactional"}
        How values are kept; a transactional source replays the same content.
    hosted : {"executor", "driver"}
        Whether two workers write the states, or the driver alone.
    cached : bool
        Whether the processes that write keep caches across batches.
    harm : {"", "failover", "rewind", "restore", "lose", "wipe", "forget", "copy", "cut", "anew"}
        What befalls the stores: the newest writes are lost with a change of server, down to those
        that were confirmed or any at all; an old backup comes back, one store is emptied, stores
        and log are deleted while old tasks live, the log alone is, two copies of it take turns, the
        log loses its newest entries with its driver, another log begins on the same stores while
        the drivers of the first live on.
    staged : bool
        Whether batches are computed and staged by one process of a driver, and committed behind it
        by another; a source then replays other content whatever the kind.
    early : bool
        Whether the driver reads what a batch updates before the batch begins.
    sweeps : bool
        Whether every batch sweeps, and forgets which batches before it were tried again.
    expires : bool
        Whether each value expires some time after its last update, and stores with a fence sweep.
    beside : {"", "database", "map"}
        What the second of two states is, if the first is a table: a table of another database, one
        of the same, or a map in a store with a fence.
    together : bool
        Whether the log lies in the database of the tables, and a batch is committed and merged in
        one transaction.
    replaces : bool
        Whether the log of the source of staged batches is in an object store, where a driver may
        replace what another has written there.
    gap : bool
        Whether something may happen between the check of a store without abilities and its
        write, or before a driver looks at what the source has logged in an object store; or a table
        is restored without its record.  It may in life: this is what the guarantee leaves open.
    """

    ability: Ability
    kind: Literal["opaque", "transactional"] = "opaque"
    hosted: Literal["executor", "driver"] = "executor"
    cached: bool = False
    harm: Harm = ""
    staged: bool = False
    early: bool = False
    sweeps: bool = False
    expires: bool = False
    beside: Literal["", "database", "map"] = ""
    together: bool = False
    replaces: bool = False
    gap: bool = False
