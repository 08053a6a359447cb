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
        26,
        "start D1*19 T2*5 D1*15 read*2 start*2 D9*19 T10*5 D9 start D9*6 read D9*8 T13*5 T14*5 "
        "D9*6",
    ),
    "new_attempt": Trace(
        Setup("fenced"),
        0,
        "start D1*14",
    ),
    "retried_kept": Trace(
        Setup("fenced"),
        2,
        "start*2 D2*19 T3*5 D2*6",
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
        "start D1*19 T2*4 forget",
    ),
    "lost": Trace(
        Setup("fenced", harm="lose"),
        0,
        "start D1*19 T4*5 T3*5 T2*5 D1*6 lose:1",
    ),
    "rewound": Trace(
        Setup("fenced", harm="restore"),
        245,
        "start D1*19 read*2 fail:T3 D1*8 fail:D1 D1*12 T8*5 again:T9 again:T7 T9*7 T11*5 D1*4 "
        "read*3 D1*6 backup read D1*8 T16*5 T17*5 T18*5 T19*5 D1*6 restore",
    ),
    "ready": Trace(
        Setup("fenced", harm="failover"),
        13,
        "start*2 D2*19 T5*5 T4*5 failover:1:1 T3*5 D2*6",
    ),
    "mark": Trace(
        Setup("fenced", harm="rewind"),
        12,
        "start D1*19 start fail:T2 D1*13 read start D9*7 read D9*12 T11*5 T13*5 T12*7 D9*15 "
        "T16*5 T15*5 T14*5 D9*6",
    ),
    "lost_writes": Trace(
        Setup("fenced", harm="rewind"),
        72,
        "start D1*19 fail:T3 D1*8 fail:D1 D1*12 fail:T5 D1*12 read D1*18 T8*5 D1 rewind:0:1 "
        "D1*13 T9*5 T11*5 T10*5 D1*12 rewind:0:4",
    ),
    "other_copy": Trace(
        Setup("fenced", harm="copy"),
        11,
        "start D1*19 start*3 D8*2 copy D8*12 turn",
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
        10,
        "start*2 D2*19 fail:D2 D2*12 again:T7 T9*3",
    ),
    "equality": Trace(
        Setup("fenced", harm="wipe"),
        2,
        "start D1*11 start D2*19 read*2 start wipe start D8*15 start D8*4 read start D13*19 "
        "wipe T16*4",
    ),
    "fence_log_id": Trace(
        Setup("fenced", harm="wipe"),
        1474,
        "start D1*8 start D1*11 read wipe start*2 D8*2 read D8*20 start wipe start D13*2 "
        "again:T10 D13*17 T15*5 D13*15 T16*5 T18*5 T17*5 T14*6 T19*5 D13*6",
    ),
    "entry": Trace(
        Setup("entry"),
        7,
        "start read start*2 D4*19 fail:T5 T6*2 D4*5",
    ),
    "recompute": Trace(
        Setup("entry"),
        588,
        "start D1*19 again:T5 fail:T2 read D1*13 T10*4 T9*4 T8*2 T3*3 T8*4 D1*6",
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
        0,
        "start D1*19 T3*2 T4*5 T3*3 T2*5 D1*15 read fail:T6 D1*13 T11*5 T10*7 start D12*2 D1*15 "
        "D12*2 fail:T13 D12 T14*4 D1*13 T16*4",
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
    "cache_validity": Trace(
        Setup("fenced", cached=True),
        0,
        "",
    ),
    "write_then_cache": Trace(
        Setup("fenced", hosted="driver", cached=True),
        22596,
        "start*3 D3*2 read D3*17 again:T6 T5*4 fail:D3 D3*12 T9*5 T8*7 D3*4 T5 D3*11 T12*5 "
        "T10*5 T11*5 D3*6",
    ),
    "cache_of_earlier_batches": Trace(
        Setup("fenced", kind="transactional", hosted="driver", cached=True, harm="failover"),
        6,
        "start*2 D2*21 T3*4 D2*17 T4*6 T5*4 failover:1:2 D2*16 read again:T7 T9*2 T6*2 D2*6",
    ),
    "one_cut": Trace(
        Setup("fenced"),
        37,
        "start D1*16 read D1*6 T3*5 T4*7 read D1*15 read*2 again:T7 kill:T11 D1*16 T13*7 read "
        "T12*5 read D1*8 R15*11",
    ),
    "control_first": Trace(
        Setup("fenced"),
        5,
        "start D1*19 read R5*2",
    ),
    "restart": Trace(
        Setup("versioned"),
        15,
        "start*2 D2*19 fail:D2 D2*12 T8*4 start T7*6 T9*4 D2*15 T12*6 T13 T11*4 T13*3 start "
        "D2*15 D14*11 fail:D14 D14*12 read R22*2",
    ),
    "recheck": Trace(
        Setup("fenced"),
        463,
        "start D1*11 fail:D1 D1*12 start D4*19 T6*5 T7*5 T5*5 T8*7 D4*15 T9*5 D4*15 read R12*8",
    ),
}
