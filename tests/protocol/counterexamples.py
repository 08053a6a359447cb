"""One run for each rule of the protocol that goes wrong as soon as that rule is taken out.

Found by the random search, then cut down to the actions it takes; see ``World`` for the words.
"""

from __future__ import annotations

from tests.protocol.model import Setup, Trace

COUNTEREXAMPLES: dict[str, Trace] = {
    "exclusive": Trace(
        Setup("fenced"),
        41,
        "start D1*22 read again:T2 start D7*3",
    ),
    "own_entry": Trace(
        Setup("fenced"),
        0,
        "start D1*19 T3*2 T4*5 T3*3 T2*5 D1*15 kill:T7",
    ),
    "begin_first": Trace(
        Setup("fenced"),
        0,
        "start D1*14",
    ),
    "claim_first": Trace(
        Setup("fenced"),
        69,
        "start*2 D2*18 read T5*7 T3 read T3*4 read T4*5 read D2*15 T11*2 T10*5 T11*3 D2*2 start "
        "D12*3 D2*5 D12*2",
    ),
    "listing": Trace(
        Setup("fenced"),
        0,
        "start D1*19 T3*2 T4*5 T3*3 T2*5 D1*15 read fail:T6 D1*13 start D12*5",
    ),
    "place": Trace(
        Setup("fenced"),
        12,
        "start D1*19 start fail:T2 D1*13 read start D9*7 read D9*12 T13*4 T11 T13 T11*4 T12*7 D9*6",
    ),
    "new_attempt": Trace(
        Setup("fenced"),
        0,
        "start D1*14",
    ),
    "retried_kept": Trace(
        Setup("fenced"),
        1,
        "start D1*19 start D4*11",
    ),
    "dead_letter": Trace(
        Setup("fenced"),
        4,
        "start D1*19 fail:T3 D1*13 fail:T4 T6*4 D1*6",
    ),
    "planned": Trace(
        Setup("fenced", kind="transactional"),
        0,
        "start D1*19 T3*3",
    ),
    "discard": Trace(
        Setup("fenced"),
        1,
        "start D1*19 start D4*6 again:T3 D4*13 kill:T8 D4*13 T10*7 T9*5 D4*15 T14*5 T12*5 T13*5 "
        "again:T11 T15*5 D4*6",
    ),
    "staged_first": Trace(
        Setup("fenced", kind="transactional", staged=True),
        26,
        "start D1*16 C2*11 T3*3",
    ),
    "staged_told": Trace(
        Setup("fenced", staged=True),
        2,
        "start D1*17",
    ),
    "staged_kept": Trace(
        Setup("fenced", staged=True),
        0,
        "start D1*15 C2 D1*5 C2*2",
    ),
    "staged_recovered": Trace(
        Setup("fenced", staged=True),
        0,
        "start D1*20",
    ),
    "staged_claim": Trace(
        Setup("fenced", staged=True),
        21,
        "start D1*18 C2 read D1 C2*10 fail:C2 D1 C2*4 start again:T6 start C2*4 D9*2 C2*4 D9*8 "
        "read D9*12 C14*11 again:T16 read start D20*14",
    ),
    "staged_highest": Trace(
        Setup("fenced", kind="transactional", staged=True),
        212,
        "start D1*13 start D1 D3*18 D1*4 C4*2 read C4*5 start C4*4 T7*3",
    ),
    "staged_listed": Trace(
        Setup("fenced", kind="transactional", staged=True, replaces=True),
        2804,
        "start*2 D1 D2*15 read D1*12 C5 D1*17 C5*4 start C5 read C5*5 T8*4 C5*8 start read start "
        "D11*3 C5*7 D1*4 C5*6 D11*16 T12*3",
    ),
    "staged_again": Trace(
        Setup("fenced", staged=True, replaces=True),
        4855,
        "start D1*15 start*2 D4*2 D1 read D4*12 D1*3 D3*12 C7*2 D4*3 C7*9",
    ),
    "staged_left": Trace(
        Setup("fenced", staged=True),
        64,
        "start D1*22 read D1*4 read D1 start*3 D6*17 D7*18 D6*2 D7*4 D6*2",
    ),
    "staged_held": Trace(
        Setup("fenced", kind="transactional", staged=True),
        86,
        "start*2 D2*7 start D2*6 D3*4 D2 C4 D3*9 D2*5 C4*9 T8*3 D3*4",
    ),
    "staged_replay": Trace(
        Setup("fenced", staged=True, replaces=True),
        2913,
        "start D1*11 start D3*18 C4 read D3*4 C4*4 D3*17 C4*10 T6*5 C4*17 start D9*23 D3",
    ),
    "staged_before": Trace(
        Setup("fenced", staged=True, replaces=True),
        242,
        "start*2 D2*18 C3 D2*4 C3*10 start D6*22 D2",
    ),
    "staged_follows": Trace(
        Setup("fenced", staged=True, replaces=True),
        1030,
        "start D1*12 start D3*8 D1*2 D3*11 D1",
    ),
    "begin_compared": Trace(
        Setup("fenced"),
        2,
        "start D1*8",
    ),
    "begin_every_state": Trace(
        Setup("fenced"),
        3,
        "",
    ),
    "log_id": Trace(
        Setup("fenced", harm="forget"),
        0,
        "start D1*19 T4*5 T3*5 T2*5 D1*15 forget T7*4",
    ),
    "abandoned_unready": Trace(
        Setup("fenced", harm="anew"),
        92,
        "start D1*19 T3*5 T4*5 T2*7 anew D1*4",
    ),
    "abandoned_behind": Trace(
        Setup("fenced", harm="anew"),
        26,
        "start D1*6 start D2*19 start anew D4*19 fail:T5 D4*13 T7*4 start D10*11",
    ),
    "abandoned_opaque": Trace(
        Setup("fenced", kind="transactional", harm="anew"),
        11,
        "start D1*21 T2*3 anew",
    ),
    "lost": Trace(
        Setup("fenced", harm="lose"),
        0,
        "start D1*19 T4*5 T3*5 T2*5 D1*6 lose:1",
    ),
    "rewound": Trace(
        Setup("fenced", harm="restore"),
        255,
        "start D1*19 T2*5 D1*15 T4*5 T3*5 D1*15 T5*5 D1*12 start D1 read D1 backup D1*4 T8*5 "
        "D1*6 restore",
    ),
    "swept": Trace(Setup("fenced", sweeps=True), 0, ""),
    "looked_first": Trace(
        Setup("fenced", "transactional", "driver", harm="failover", early=True),
        1192,
        "start D1*24 T4*3 failover:0:2 T3*4 D1*8 failover:1:3 D1*8 T6*4 T5*4 T7*2 D1*6",
    ),
    "ready": Trace(
        Setup("fenced", harm="failover"),
        13,
        "start*2 D2*19 T5*5 T4*5 failover:1:1 T3*5 D2*6",
    ),
    "mark": Trace(
        Setup("fenced", harm="rewind"),
        28,
        "start D1*17 start D2 D1 D2*4 D1 read*2 D2*4 read D2*10 again:T11 T11 read*2 "
        "rewind:1:22 T11*4 start D2*5 start D2*11 start D19*19 again:T20 T20*4 T21*4 T22*5 T21 "
        "D19*5 rewind:0:3 D19*2",
    ),
    "lost_writes": Trace(
        Setup("fenced", harm="rewind"),
        5,
        "start D1*19 rewind:0:2 read T3*5 read D1*13 fail:D1 D1*12 again:T10 T11*2 T13*5 T11*3 "
        "T12*5 read D1 read D1*17 T17*4 rewind:0:6",
    ),
    "other_copy": Trace(
        Setup("fenced", harm="copy"),
        11,
        "start D1*19 start*3 D8*2 copy D8*12 turn",
    ),
    "never_begun": Trace(
        Setup("fenced", harm="copy"),
        14169,
        "start D1*19 T3 T2*5 read T3*4 D1*10 copy D1*2 read D1*3 start read again:T6 start "
        "D12*12 turn start read D13*19 turn T16*4",
    ),
    "same_plan": Trace(
        Setup("fenced", kind="transactional", harm="cut"),
        1,
        "start D1*21 T2*3 cut:1",
    ),
    "announce_own": Trace(
        Setup("fenced"),
        104,
        "start D1*19 read*2 start*2 D8*19 T10*5 T9*5 D8*7",
    ),
    "announce_at_start": Trace(
        Setup("fenced"),
        185,
        "start D1*20 fail:D1 D1*12 T4*5 T5*5 start D1*3 start D1*3 read D7*8 read R9*11",
    ),
    "fence": Trace(
        Setup("fenced"),
        54,
        "start D1*19 T2*5 T3*5 D1*15 T4*3",
    ),
    "equality": Trace(
        Setup("fenced", harm="wipe"),
        2,
        "start D1*11 start D2*19 read*2 start wipe start D8*15 start D8*4 read start D13*19 "
        "wipe T16*4",
    ),
    "fence_log_id": Trace(
        Setup("fenced", harm="wipe"),
        4564,
        "start D1*19 start*3 wipe start D8*19 T2*4 T9*5 D8*6",
    ),
    "entry": Trace(
        Setup("entry"),
        7,
        "start read start*2 D4*19 fail:T5 T6*2 D4*5",
    ),
    "recompute": Trace(
        Setup("entry"),
        588,
        "start D1*19 again:T5 fail:T2 read D1*13 T10*4 T9*4 T8*2 read T3*3 T8*4 D1*6 start D12*13",
    ),
    "highest": Trace(
        Setup("versioned"),
        7,
        "start read start*2 D4*19 fail:T5 T6*2 D4*5",
    ),
    "checked": Trace(
        Setup("none"),
        7,
        "start read start*2 D4*19 fail:T5 T6*2 D4*5",
    ),
    "attempts": Trace(
        Setup("fenced"),
        0,
        "start D1*19 T2*4",
    ),
    "overtaken": Trace(
        Setup("entry"),
        5,
        "start D1*19 read*2 start fail:D1 D1*12 again:T8 read fail:D1 D1*12 T14*4 read T13*4 "
        "T15*4 D1*15 T18*6 T17*4 D1*6",
    ),
    "committed_prev": Trace(
        Setup("fenced"),
        1,
        "start D1*19 start D4*6 again:T3 D4*13 kill:T8 D4*13 T10*7 T9*5 D4*18 T11*4 read*2 "
        "fail:D4 D4*12 T17*4",
    ),
    "applied": Trace(
        Setup("fenced", kind="transactional"),
        0,
        "start D1*21 T3*3",
    ),
    "once": Trace(
        Setup("fenced"),
        0,
        "",
    ),
    "one_updater": Trace(
        Setup("fenced"),
        0,
        "",
    ),
    "tombstones": Trace(
        Setup("entry"),
        0,
        "start D1*19 T4*4 T2*4 T3*4 D1*15 read R9*8",
    ),
    "expired_committed": Trace(
        Setup("fenced", expires=True),
        3,
        "start D1*11 fail:D1 D1*12 T2*5 D1*21 T4*7 T3*5 D1*21 start kill:T5 D1*13 T9*5 D1*24 "
        "again:T10 read R14*11",
    ),
    "expired_before": Trace(
        Setup("fenced", expires=True),
        69,
        "start*2 D2*19 read T5*7 T3 read T3*4 read T4*5 read D2*21 start D12*19 read T13*5 T14*7 "
        "D12 read R16*5 D12*5 R16*6",
    ),
    "expired_own": Trace(
        Setup("fenced", expires=True),
        0,
        "",
    ),
    "expired_fenced": Trace(
        Setup("fenced", expires=True),
        2,
        "start D1*11 start D2*19 T4*7 read T3*5 D2*21 T6*5 T7*5",
    ),
    "rows_own_id": Trace(
        Setup("rows"),
        133,
        "start*2 D2*19 T4*4 again:T3 T5*4 D2*15 read*2 T7*4 T6*5 D2*6 again:T3 T10*2",
    ),
    "rows_named": Trace(
        Setup("rows", beside="map"),
        12,
        "start D1*19 start fail:T2 D1*13 read start D9*6 read D9*13 again:T11 T13*3 T14*2 T11*3 "
        "T13*2 T12*4 D9*6",
    ),
    "rows_counted": Trace(
        Setup("rows", harm="failover"),
        20,
        "start D1*19 T2*3 T3*4 failover:1:2 D1*6",
    ),
    "rows_logged": Trace(
        Setup("rows"),
        39,
        "start D1*19 T2*3 D1*6",
    ),
    "rows_listed": Trace(
        Setup("rows", beside="map"),
        74,
        "start D1*19 T3*5 T2*4 D1*2",
    ),
    "rows_with_record": Trace(
        Setup("rows"),
        24,
        "start D1*2 read D1*17 T3*3 T4*4 D1*8 fail:D1",
    ),
    "rows_locked": Trace(
        Setup("rows"),
        64,
        "start D1*19 read fail:T3 D1*4 read D1 fail:D1 D1*28 start again:T9 start D13*2 again:T9 "
        "D13*20 T15*3 start D13*8 D16*10 D13",
    ),
    "rows_merged_first": Trace(
        Setup("rows", harm="failover"),
        3,
        "start D1*11 fail:D1 D1*12 T2*3 D1*9 failover:0:2 D1*6",
    ),
    "rows_emptied_with_record": Trace(
        Setup("rows"),
        5525,
        "start read D1*21 fail:T4 D1*10 start read D1*5 start*2 D10*14 read start D12*21 T14*3 "
        "T13*3 T16*4 T15*3 D12*6 D10",
    ),
    "rows_together": Trace(
        Setup("rows", beside="database"),
        1,
        "start D1*19 start D4*19 T7*3 T5*3 T6*3 read D4*8 R8*2",
    ),
    "together_own_entry": Trace(
        Setup("rows", beside="database", together=True),
        8,
        "start D1*14 T5*3 T2*3 T4*4 T3*3 D1*13 read again:T7 T6*4 read T9*3 read D1*13 fail:T15 "
        "D1*2 start read*2 D1*11 T19*3 T20*4 D1*6 D16*16 T21*3 D16*6",
    ),
    "cache_validity": Trace(
        Setup("fenced", cached=True),
        0,
        "",
    ),
    "write_then_cache": Trace(
        Setup("fenced", hosted="driver", cached=True),
        120454,
        "start D1*19 fail:D1 read*2 D1*8 T3*4 D1*7 T6*5 T8*5 T7*5 D1*11 T3 D1*7 kill:T9 D1*13 "
        "T12*4",
    ),
    "cache_of_earlier_batches": Trace(
        Setup("fenced", kind="transactional", hosted="driver", cached=True, harm="failover"),
        6,
        "start*2 D2*21 T3*4 D2*17 T4*6 T5*4 failover:1:2 D2*16 read again:T7 T9*2 T6*2 D2*6",
    ),
    "one_cut": Trace(
        Setup("fenced"),
        110,
        "start D1*22 T2*3 T3*7 T2*2 D1*6 start D4*3 D1*4 D4*16 read D4*3 T6*7 T7*7 read*2 D4*8 "
        "R9*11",
    ),
    "control_first": Trace(
        Setup("fenced"),
        5,
        "start D1*19 read R5*2",
    ),
    "restart": Trace(
        Setup("versioned"),
        14,
        "start D1*19 T2*6 T3*4 D1*15 start D8*8 start D8*11 T12*4 T10*4 T11*4 D8*15 again:T14 "
        "start D9*19 read*2 R20*2",
    ),
    "recheck": Trace(
        Setup("fenced"),
        270,
        "start D1*22 fail:T3 D1*13 read T4*5 read T5*7 D1*2 read D1*16 T9*5 T12*2 T11*3 T12*2 "
        "T11*2 T12 T10*5 D1*8 read*2 R14*8 D1*7 T18*2 R14",
    ),
}
