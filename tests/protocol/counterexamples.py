"""One run for each rule of the protocol that goes wrong as soon as that rule is taken out.

Found by the random search, then cut down to the actions it takes; see ``World`` for the words.
"""

from __future__ import annotations

from tests.protocol.model import Setup, Trace

COUNTEREXAMPLES: dict[str, Trace] = {
    "exclusive": Trace(
        Setup("fenced"),
        0,
        "start D1*14 T4*5 T3*5 T2*5 D1*18 read fail:T6 D1*12 T11*5 T10*7 start D12*2 D1*6 D12",
    ),
    "own_entry": Trace(
        Setup("fenced"),
        0,
        "start D1*14 T4*5 T3*5 T2*5 D1*16",
    ),
    "begin_first": Trace(
        Setup("fenced"),
        1,
        "start D1*10",
    ),
    "listing": Trace(
        Setup("fenced"),
        0,
        "start D1*14 T4*5 T3*5 T2*5 D1*18 read fail:T6 D1*12 start D12*2",
    ),
    "look_up": Trace(
        Setup("fenced"),
        72,
        "start D1*14 T4*5 T3*5 T2*5 D1*8 fail:D1 D1*8 kill:T5 D1*12 fail:T7 D1*17 fail:D1 D1*2",
    ),
    "place": Trace(
        Setup("fenced"),
        2,
        "start D1*14 start D3*14 read start T5*7 T4*5 D3*18 T9 T10*5 T8*5 T9*4 D3*6",
    ),
    "new_attempt": Trace(
        Setup("fenced"),
        0,
        "start D1*10",
    ),
    "retried_kept": Trace(
        Setup("fenced"),
        1,
        "start D1*3",
    ),
    "dead_letter": Trace(
        Setup("fenced"),
        58,
        "start D1*14 start D3*14 T6*3 T4*5 T5*2 T6*4 T5*3 D3*12 fail:D3 D3*11 T7*4 fail:D3 D3*6",
    ),
    "planned": Trace(
        Setup("fenced", kind="transactional"),
        0,
        "start D1*14 T3*3",
    ),
    "begin_compared": Trace(
        Setup("fenced"),
        2,
        "start read start D3*5",
    ),
    "begin_every_state": Trace(
        Setup("fenced"),
        3,
        "",
    ),
    "log_id": Trace(
        Setup("fenced", harm="forget"),
        0,
        "start D1*14 T2*4 forget",
    ),
    "lost": Trace(
        Setup("fenced", harm="lose"),
        0,
        "start D1*14 T4*5 T3*5 T2*5 D1*6 lose:1",
    ),
    "rewound": Trace(
        Setup("fenced", harm="restore"),
        53,
        "start D1*14 read again:T3 T6*5 T4*5 T2*5 D1*11 read backup read D1*7 T10*4 T11*5 "
        "T9*5 T12*4 T10 T12*3 D1*6 restore",
    ),
    "ready": Trace(
        Setup("fenced", harm="failover"),
        8,
        "start D1*14 T5*4 T2*4 failover:1:1 T5 T4*5 T2 T3*5 D1*6",
    ),
    "mark": Trace(
        Setup("fenced", harm="rewind"),
        1560,
        "start D1*14 rewind:1:2 T2*5 D1*12 fail:T4 D1*20 again:T5 D1*9 start*2 D9*3 read "
        "D9*15 T12*5 D9*6 rewind:1:2 D9*6 D10*8",
    ),
    "lost_writes": Trace(
        Setup("fenced", harm="rewind"),
        19,
        "start D1*14 T2*7 rewind:0:9 read T3*7 D1*13 T7*5 T5*5 T8*2 T6*5 T8*5 D1*6 rewind:1:4",
    ),
    "other_copy": Trace(
        Setup("fenced", harm="copy"),
        18,
        "start D1*14 fail:T4 copy D1*8 turn",
    ),
    "announce_own": Trace(
        Setup("fenced"),
        0,
        "start D1*14 T4*5 T3*5 T2*5 D1*18 read fail:T6 D1*12 T11*5 T10*7 start D1*18 fail:T13 "
        "D1*12 T16*5 T17*5 T15*5 D1*7",
    ),
    "announce_at_start": Trace(
        Setup("fenced"),
        292,
        "start D1*16 T2*5 D1*18 T3*7 T4*5 D1*18 T5*5 D1*16 read D1*2 T8*2 read*2 T8*3 T9*5 "
        "T7*5 D1*6 start*4 D15*5 start read R17*11",
    ),
    "fence": Trace(
        Setup("fenced"),
        2,
        "start D1*14 start D3*14 T5*3",
    ),
    "equality": Trace(
        Setup("fenced", harm="wipe"),
        1,
        "start D1*14 start D4*6 again:T3 D4*8 wipe read T7*4",
    ),
    "fence_log_id": Trace(
        Setup("fenced", harm="wipe"),
        1744,
        "start D1*14 start*2 D5*14 wipe start D9*14 wipe start D13*14 T12*3 T15*5 T12 T14*7 D13*6",
    ),
    "entry": Trace(
        Setup("entry"),
        2,
        "start D1*14 T2*2",
    ),
    "recompute": Trace(
        Setup("entry"),
        279,
        "start*2 D2*4 start D2*8 read D3*6 D2 D3*2 start D5*14 T7*4 D2 T6*2 T8*3 T6*2 D5*6",
    ),
    "highest": Trace(
        Setup("versioned"),
        2,
        "start D1*14 T2*2",
    ),
    "checked": Trace(
        Setup("none"),
        2,
        "start D1*14 T2*2",
    ),
    "attempts": Trace(
        Setup("fenced"),
        1,
        "start D1*14 T2*6",
    ),
    "overtaken": Trace(
        Setup("entry"),
        2,
        "start D1*14 start D3*14 T5*6 T4*4 D3*18",
    ),
    "committed_prev": Trace(
        Setup("fenced"),
        2,
        "start D1*14 start D3*14 read start T5*7 T4*5 D3*18 start D11*14 read start again:T13 "
        "T16*4 T13*4",
    ),
    "applied": Trace(
        Setup("fenced", kind="transactional"),
        0,
        "start D1*17 T3*3",
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
        "start D1*14 T4*4 T2*4 T3*4 D1*18 read R9*8",
    ),
    "cache_validity": Trace(
        Setup("fenced", cached=True),
        0,
        "",
    ),
    "write_then_cache": Trace(
        Setup("fenced", hosted="driver", cached=True),
        44069,
        "start D1*14 T2*7 T3*5 T4*5 D1*9 read D1*9 fail:D1 D1*11 fail:T8 T10*4 D1*12 T11*5 "
        "D1*8 T10 D1*10 T15*4",
    ),
    "cache_of_earlier_batches": Trace(
        Setup("fenced", kind="transactional", hosted="driver", cached=True, harm="failover"),
        5,
        "start D1*17 T2*3 failover:0:1 T4*2 read T3*3 read start T4 fail:D1 D1*11 T9*2 T8*2 "
        "T10*2 D1*6",
    ),
    "one_cut": Trace(
        Setup("fenced"),
        52,
        "start*2 D2*14 T3 T4*7 T3*6 D2*12 start*2 D5*8 read D5*6 again:T10 read D6*8 read "
        "again:T12 D6*10 T16*6 read T16 T17*5 D6*9 read R19*11",
    ),
    "control_first": Trace(
        Setup("fenced"),
        16,
        "start D1*7 start D2*14 D1 start D6*14 read R9*2",
    ),
    "restart": Trace(
        Setup("versioned"),
        7,
        "start read start*2 D4*10 read D4*4 read R10*2",
    ),
    "recheck": Trace(
        Setup("fenced"),
        165,
        "start*3 D3*18 T4*5 D3*10 read D3*8 T6 T7*7 T6*4 D3 read*2 D3*17 read*4 R14*8",
    ),
}
