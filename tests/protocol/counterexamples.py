"""One run for each rule of the protocol that goes wrong as soon as that rule is taken out.

Found by the random search, then cut down to the actions it takes; see ``World`` for the words.
"""

from __future__ import annotations

from trident.states.testing.model import Setup, Trace

COUNTEREXAMPLES: dict[str, Trace] = {
    "exclusive": Trace(
        Setup("fenced"),
        0,
        "start D1*14 T3 T4*5 T3*4 T2*5 D1*16 read fail:T6 D1*12 T11*5 T10*7 start D12*2 D1*4 D12",
    ),
    "own_entry": Trace(
        Setup("fenced"),
        0,
        "start D1*14 T3 T4*5 T3*4 T2*5",
    ),
    "begin_first": Trace(
        Setup("fenced"),
        1,
        "start D1*14 T2*6",
    ),
    "listing": Trace(
        Setup("fenced"),
        0,
        "start D1*14 T4*5 T3*5 T2*5 D1*16 read fail:T6 D1*12 start D12*2",
    ),
    "look_up": Trace(
        Setup("fenced"),
        55,
        "start D1*14 T2*5 D1*16 T3*5 T4*5 T5*5 D1*4 fail:D1 D1*2",
    ),
    "place": Trace(
        Setup("fenced"),
        0,
        "start D1*14 T4*5 T3*5 T2*5 D1*16 read fail:T6 D1*12 T11*5 T10*7 start D12*2 "
        "D1*16 fail:T13 D1*12 T16*5 T17*5 T15*5 D1*4",
    ),
    "new_attempt": Trace(
        Setup("fenced"),
        0,
        "start D1*14 T2*4",
    ),
    "exceptions_kept": Trace(
        Setup("fenced"),
        0,
        "start D1*14 T4*5 T3*5 T2*5 D1*16 read fail:T6 D1*12 T11*5 T10*7 start D12*2 "
        "D1*16 fail:T13 D1*12 T16*5 T17*5 T15*5 D1*4",
    ),
    "dead_letter": Trace(
        Setup("fenced"),
        72,
        "start D1*14 T4*5 T3*5 T2*5 D1*10 start D5*14 fail:T7 D5*12 T9 fail:T8 D5 T9*3 D5*6",
    ),
    "planned": Trace(
        Setup("fenced", kind="transactional"),
        0,
        "start D1*14 T3*3",
    ),
    "begin_compared": Trace(
        Setup("fenced"),
        6,
        "start D1*5",
    ),
    "begin_every_state": Trace(
        Setup("fenced"),
        3,
        "",
    ),
    "lineage": Trace(
        Setup("fenced", harm="forget"),
        0,
        "start D1*14 T2*4 forget",
    ),
    "lost": Trace(
        Setup("fenced", harm="lose"),
        0,
        "start D1*14 T4*5 T3*5 T2*5 D1*4 lose:1",
    ),
    "rewound": Trace(
        Setup("fenced", harm="restore"),
        255,
        "start D1*14 T2*5 D1*16 T4*5 T3*5 D1*16 T5*5 D1*12 start D1 read D1 backup D1*6 "
        "T8*5 D1*4 restore",
    ),
    "ready": Trace(
        Setup("fenced", harm="failover"),
        8,
        "start D1*14 T5*4 T2*4 failover:1:1 T5 T4*5 T2 T3*5 D1*4",
    ),
    "announce_own": Trace(
        Setup("fenced"),
        26,
        "start D1*14 read start D4*14 fail:T5 D4*12 start D10*14 start read D13*14 T15*3 "
        "T17*5 read T15*2 again:T16 T19*5 D13*5",
    ),
    "announce_at_start": Trace(
        Setup("fenced"),
        6,
        "start D1 start D2*12 T3*5 D2*16 T4*5 T5*3 T4*2 T5*2 start D2*4 read D1*4 read R8*11",
    ),
    "fence": Trace(
        Setup("fenced"),
        13,
        "start*2 D2*14 T5*3",
    ),
    "equality": Trace(
        Setup("fenced", harm="wipe"),
        1,
        "start D1*14 start D4*6 again:T3 D4*8 wipe read T7*4",
    ),
    "fence_lineage": Trace(
        Setup("fenced", harm="wipe"),
        1744,
        "start D1*14 start*2 D5*14 wipe start D9*14 wipe start D13*14 T12*3 T15*5 T12 T14*7 D13*4",
    ),
    "entry": Trace(
        Setup("entry"),
        2,
        "start D1*14 T2*2",
    ),
    "recompute": Trace(
        Setup("entry"),
        279,
        "start*2 D2*4 start D2*8 read D3*6 D2 D3*2 start D5*14 T7*4 D2 T6*2 T8*3 T6*2 D5*4",
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
        3,
        "start D1*14 fail:D1 D1*2 T2*4 D1*9 T4*5 D1*10",
    ),
    "overtaken": Trace(
        Setup("entry"),
        2,
        "start D1*14 start D3*14 T5*6 T4*4 D3*16",
    ),
    "committed_prev": Trace(
        Setup("fenced"),
        2,
        "start D1*14 start D3*14 read start T5*7 T4*5 D3*16 T8*4 start D11*14 T12*4",
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
        "start D1*14 T4*4 T2*4 T3*4 D1*16 read R9*8",
    ),
    "cache_validity": Trace(
        Setup("fenced", cached=True),
        0,
        "",
    ),
    "write_then_cache": Trace(
        Setup("fenced", hosted="driver", cached=True),
        138,
        "start D1*2 read*2 D1*12 T4*7 D1*16 T5*2 T6 read again:T5 T9*7 T7*5 T6*4 D1*2 "
        "again:T5 T5*2 D1*14 T11*7 T12*5 again:T5 D1*8 again:T13 read D1*8 T5 T17*6 read "
        "R19*11",
    ),
    "cache_of_earlier_batches": Trace(
        Setup("fenced", kind="transactional", hosted="driver", cached=True, harm="failover"),
        5,
        "start D1*17 T2*3 failover:0:1 T4 read T3*3 read start T4*2 fail:D1 D1*11 T9*2 "
        "T8*2 T10*2 D1*4",
    ),
    "one_cut": Trace(
        Setup("fenced"),
        170,
        "start D1*14 read start D6*14 T7*7 T8*5 D6*7 R5*11",
    ),
    "control_first": Trace(
        Setup("fenced"),
        8,
        "start D1*14 T2 T5*5 T2*4 T4*5 T3*5 D1*16 T7*5 T6*5 read D1*16 start read R14*2",
    ),
    "restart": Trace(
        Setup("versioned"),
        22,
        "start read D1*14 read R5*2",
    ),
    "recheck": Trace(
        Setup("fenced"),
        165,
        "start*3 D3*18 T4*5 D3*10 read D3*6 T6 T7*7 T6*4 D3*16 T8*5 read*2 D3*16 T12*5 "
        "T11*7 D3*4 read*3 R15*8",
    ),
}
