"""The adversary, what it finds, and how that is kept and replayed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.protocol.model.rules import Rules, Setup
from tests.protocol.model.world import World, Wrong

_ACTIONS = 250


@dataclass(frozen=True)
class Trace:
    """What happened in one run: a seed for the batches' content, and the actions in order.

    Parameters
    ----------
    setup : Setup
    seed : int
    actions : str
        Words of `World`, separated by blanks; ``D1*5`` is ``D1`` five times.
    """

    setup: Setup
    seed: int
    actions: str

    @classmethod
    def of(cls, setup: Setup, seed: int, actions: list[str]) -> Trace:
        runs: list[list[str]] = []
        for action in actions:
            if runs and runs[-1][0] == action:
                runs[-1].append(action)
            else:
                runs.append([action])
        words = [run[0] if len(run) == 1 else f"{run[0]}*{len(run)}" for run in runs]
        return cls(setup, seed, " ".join(words))

    def words(self) -> list[str]:
        found: list[str] = []
        for word in self.actions.split():
            action, _, times = word.partition("*")
            found += [action] * int(times or 1)
        return found


@dataclass(frozen=True)
class Found:
    """A run that went wrong, and how."""

    trace: Trace
    what: str


def replay(trace: Trace, rules: Rules) -> None:
    """Play a trace, then let everything end.

    Raises
    ------
    Wrong
        Where a result is not what the committed batches make.
    """
    world = World(trace.setup, rules, trace.seed)
    for action in trace.words():
        world.act(action)
    world.end()


def search(setup: Setup, rules: Rules, runs: int, first_seed: int = 0) -> Found | None:
    """Play up to `runs` random runs; the first that goes wrong, or None."""
    for seed in range(first_seed, first_seed + runs):
        found = _play(setup, rules, seed)
        if found:
            return found
    return None


def _play(setup: Setup, rules: Rules, seed: int) -> Found | None:
    random = Random(seed)
    world = World(setup, rules, seed)
    played: list[str] = []
    try:
        while len(played) < _ACTIONS:
            for action in _choose(world, random):
                played.append(action)
                world.act(action)
                if action in world.processes and not world.processes[action].ready:
                    break
        world.end()
    except Wrong as wrong:
        return Found(Trace.of(setup, seed, played), str(wrong))
    return None


def _choose(world: World, random: Random) -> list[str]:
    """The next few actions of the adversary, who lets every fifth process sleep a lot."""
    names = list(world.processes)
    ready = [name for name in names if world.processes[name].ready]
    dice = random.random()
    if not ready or dice < 0.03:
        return ["start"] if sum(name[0] == "D" for name in names) < 3 else ["kill:" + names[0]]
    name = random.choice(names)
    if dice < 0.05:
        return [f"kill:{name}"]
    if dice < 0.09:
        return [f"fail:{name}"]
    if dice < 0.14:
        return [f"again:{name}"]
    if dice < 0.20:
        return ["read"]
    if dice < 0.25 and world.setup.harm:
        return [_harm(world.setup.harm, random)]
    awake = [name for name in ready if int(name[1:]) % 5 != world.seed % 5]
    if awake and random.random() < 0.9:
        ready = awake
    return [random.choice(ready)] * random.choice((1, 2, 4, 8, 16))


def _harm(harm: str, random: Random) -> str:
    if harm == "failover":
        return f"failover:{random.randrange(2)}:{random.randrange(4)}"
    if harm == "rewind":
        return f"rewind:{random.randrange(2)}:{random.choice((0, 1, 2, 3, 4, 6, 9, 14, 22))}"
    if harm == "cut":
        return f"cut:{random.choice((1, 1, 2, 3, 5))}"
    if harm == "anew":
        return random.choice(("anew", "turn"))
    if harm == "copy":
        return random.choice(("copy", "turn"))
    if harm == "restore":
        return random.choice(("backup", "backup", "restore"))
    if harm == "lose":
        return f"lose:{random.randrange(2)}"
    return harm


def shrink(found: Found, rules: Rules) -> Found:
    """The same failure with as few actions as can be found by leaving some out."""
    actions = found.trace.words()
    size = len(actions) // 2
    while size:
        start = 0
        while start < len(actions):
            fewer = actions[:start] + actions[start + size :]
            trace = Trace.of(found.trace.setup, found.trace.seed, fewer)
            try:
                replay(trace, rules)
                start += size
            except Wrong as wrong:
                actions, found = fewer, Found(trace, str(wrong))
        size //= 2
    return found
