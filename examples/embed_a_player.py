"""Players in a service of your own, without outvote's network: your transport, your disk, restarts in the middle.

    python examples/embed_a_player.py
    python examples/embed_a_player.py --sites paris,lima,tokyo,oslo

Each site and the server are processes that share nothing but a folder, where they drop files for each other; a message
is a file of one byte or two. Each keeps a snapshot; early on its power fails, and a supervisor starts it again.
Outvote's core needs the standard library only; the picture needs matplotlib.
"""

import argparse
import json
import multiprocessing
import os
import random
import tempfile
import time
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from outvote import OutvoteError, Task, protocols
from outvote.core.codes import TallyCodebook, pack, unpack

RATES = {"red": 0.2, "green": 0.6, "blue": 0.5, "grey": 0.1}  # what users like, and nobody knows
FAILS_AT, POWER_FAILURE = 6, 9  # messages after which a process dies for once, and its exit code then


def put(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all."""
    path.with_suffix(".part").write_bytes(data)
    path.with_suffix(".part").replace(path)


def clock() -> int:
    """Milliseconds: times are always told."""
    return time.time_ns() // 1_000_000


def run_site(task: Task, name: str, folder: Path) -> None:
    """Serve users until the winner is known."""
    store, book = folder / f"{name}.json", TallyCodebook(task)
    saved = json.loads(store.read_bytes()) if store.exists() else {}
    player: Any = protocols.restore(task, saved["player"]) if saved else protocols.player(task, name)
    if saved:
        player.resume(clock(), crashed=True)
    sent = saved.get("sent", [[0, 0]])  # of each message: events so far, its bits
    events = sent[-1][0]
    for file, data in saved.get("outbox", {}).items():
        put(folder / file, bytes.fromhex(data))  # perhaps once more: a message counts once
    rng, pace = random.Random(f"{name} {events}"), 1 + task.player_names.index(name)
    left, heard = list(range(len(task.arms))), 0
    while not player.finished:
        for path in sorted(folder.glob("down.*.msg"))[heard:]:
            news = book.decode_down(left, unpack(path.read_bytes()))
            left, heard = [arm for arm in left if arm not in news.arms], heard + 1
            player.receive(news)
        events, now = events + 1, clock()
        ticket = player.decide(now)
        player.reward(ticket, float(rng.random() < RATES[task.arms[ticket.arm]]), now)  # users answer at once
        for tally in player.tick(now):
            bits, file = book.encode(tally), f"up.{name}.{tally.sequence}.msg"
            sent.append([events, len(bits)])
            state = {"player": player.snapshot(), "sent": sent, "outbox": {file: pack(bits).hex()}}
            put(store, json.dumps(state).encode())  # the state together with its message, before it is sent: always
            if not saved and len(sent) > FAILS_AT:
                os._exit(POWER_FAILURE)
            put(folder / file, pack(bits))
        time.sleep(0.001 * pace)  # the next user; some sites have fewer


def run_server(task: Task, folder: Path) -> None:
    """Count tallies until one arm is left."""
    store, book = folder / "server.json", TallyCodebook(task)
    saved = json.loads(store.read_bytes()) if store.exists() else {}
    server: Any = protocols.restore(task, saved["server"]) if saved else protocols.server(task)
    down = saved.get("down", [])
    while True:
        for number, bits in enumerate(down):
            put(folder / f"down.{number}.msg", pack(bits))
        if server.finished:
            return
        for path in sorted(folder.glob("up.*.msg")):
            _, name, sequence, _ = path.name.split(".")
            tally = book.decode_up(unpack(path.read_bytes()), player=name, sequence=int(sequence))
            left = server.remaining
            down += [book.encode_down(left, news) for news in server.receive(name, tally, clock())]
            put(store, json.dumps({"server": server.snapshot(), "down": down}).encode())
            if not saved and int(sequence) >= FAILS_AT:
                os._exit(POWER_FAILURE)  # the message is still there: it is received twice, and counted once
            path.unlink()
        time.sleep(0.005)


def supervise(task: Task, folder: Path) -> None:
    """Start everybody, and again whoever died of a power failure, until all have ended."""
    jobs = {"server": partial(run_server, task, folder)}
    jobs |= {name: partial(run_site, task, name, folder) for name in task.player_names}
    running: dict[str, Any] = dict.fromkeys(jobs)
    while running:
        for name, process in list(running.items()):
            if process is None or process.exitcode == POWER_FAILURE:
                print(f"{name} {'dies and goes on from its snapshot' if process else 'starts'}")
                running[name] = multiprocessing.Process(target=jobs[name], daemon=True)
                running[name].start()
            elif process.exitcode is not None:
                assert running.pop(name).exitcode == 0
        time.sleep(0.01)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", default="paris,lima,tokyo", help="names of sites (%(default)s)")
    parser.add_argument("--plot", type=Path, default=Path("embed_a_player.png"), help="the picture (%(default)s)")
    options = parser.parse_args()
    try:
        task = Task(arms=list(RATES), players=options.sites.split(","), epsilon=0, delta=0.05, protocol="tally")
        options.plot.touch()
    except (OSError, OutvoteError) as error:
        parser.error(str(error))
    with tempfile.TemporaryDirectory() as folder:
        supervise(task, Path(folder))
        stores = {path.stem: json.loads(path.read_bytes()) for path in sorted(Path(folder).glob("*.json"))}
    state = stores.pop("server")
    server: Any = protocols.restore(task, state["server"])
    print(f"{task.arms[server.winner]} wins; messages that came twice and were counted once: {server.duplicates}")
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot(xlabel="events at the site (its users, who stay there)", ylabel="bits that left the site")
    for site, store in stores.items():
        events, bits = [each for each, _ in store["sent"]], list(accumulate(each for _, each in store["sent"]))
        print(f"{site}: {len(bits) - 1} messages, {bits[-1]} bits in all, about {events[-1]} events that stayed there")
        axes.step(events, bits, where="post", label=f"{site}: {bits[-1]} bits; its power failed at the cross")
        axes.plot(events[FAILS_AT : FAILS_AT + 1], bits[FAILS_AT : FAILS_AT + 1], "kX", ms=9)
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    axes.plot([0, 9999], [0, 29997], ":", color="0.4", label="were every event sent (2 bits arm, 1 bit outcome)")
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(options.plot, dpi=150)
    print(f"the server told each site {sum(map(len, state['down']))} bits; picture: {options.plot}")


if __name__ == "__main__":
    main()
