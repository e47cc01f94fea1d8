"""Processes: interrupts, the start of workers, a quick end, and what a cell leaves behind.

SIGTERM, which a queue such as SLURM's sends before it ends a job, and SIGHUP, which a terminal
sends that is closed, are answered like Ctrl-C.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import io
import math
import multiprocessing
import multiprocessing.process
import multiprocessing.util
import os
import pickle
import random
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn


def write_any_letter() -> None:
    """Give a terminal without our letters a ? for each; what Windows redirects is UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = "utf-8" if os.name == "nt" and not stream.isatty() else None
            stream.reconfigure(encoding=encoding, errors="replace")


@functools.cache
def end_quickly() -> None:
    """Skip Python's last garbage collection, half a second with PyTorch, when this process ends."""
    atexit.register(gc.freeze)


SAFE_PATH = "PYTHONSAFEPATH"
"""The variable with which Python imports nothing from the working folder."""


def start_worker(parent: int, safe_path: str | None, method: str | None) -> None:
    """Start a worker process: it doesn't answer Ctrl-C, and ends soon after its parent is gone.

    It must come before the first batch, for which a worker would wait for good.

    Args:
        safe_path: the parent's `SAFE_PATH`: what a cell starts is the cell's business.
        method: how the parent's own processes start, for those of cells; None for the usual way.
    """
    multiprocessing.set_start_method(method, force=True)
    if safe_path is None:
        os.environ.pop(SAFE_PATH, None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):  # see `starting_workers`
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    write_any_letter()
    end_quickly()
    _end_with(parent)


def _end_with(parent: int) -> None:
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    """End this process when its parent has ended."""
    if sys.platform == "win32":  # a child keeps its parent's number there
        import _winapi

        with contextlib.suppress(OSError):  # it has ended
            handle = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, parent)
            _winapi.WaitForSingleObject(handle, _winapi.INFINITE)
    else:
        while os.getppid() == parent:
            time.sleep(0.5)
    os._exit(1)


class Interrupted(KeyboardInterrupt):
    """The user's own interrupt; a bare `KeyboardInterrupt` inside a cell is the study's doing."""


@contextlib.contextmanager
def answering_interrupts(*, passing_on: bool = False) -> Iterator[None]:
    """Raise `Interrupted` at Ctrl-C while inside; in the main thread only, where signals arrive.

    Args:
        passing_on: whether to do at the end what this process does at it: one of another program,
            such as a worker of a cluster.
    """
    if not _in_main_thread():
        yield
        return
    _interrupts.clear()
    try:
        with _handling(_interrupt):
            yield
    finally:
        came, _interrupts[:] = [*_interrupts], []
        if passing_on and came:
            signal.raise_signal(came[0])


def check_interrupts() -> None:
    """Raise `Interrupted` if an interrupt has come, even if a cell's code has caught it.

    What such a code returns or raises then is no result.
    """
    if _interrupts and _in_main_thread():
        raise Interrupted


_ENDING = [each for each in signal.Signals if each.name in ("SIGINT", "SIGTERM", "SIGHUP")]
"""The signals that ask a process to end: by the user, by a queue, by a terminal that is closed."""

_interrupts = list[int]()
"""The signals that came since `answering_interrupts` was entered."""


@contextlib.contextmanager
def starting_workers() -> Iterator[None]:
    """Keep Ctrl-C from processes that start inside; this process answers it at the end."""
    if hasattr(signal, "pthread_sigmask"):
        from multiprocessing import resource_tracker

        from joblib.externals.loky.backend import resource_tracker as of_loky

        # Where workers start it, it lets Ctrl-C through; it outlives a terminal that hangs up.
        with holding_back(signal.SIGHUP):
            resource_tracker.ensure_running()
            of_loky.ensure_running()
    with holding_back(signal.SIGINT):
        yield


@contextlib.contextmanager
def holding_back(number: signal.Signals) -> Iterator[None]:
    """Hold a signal back while inside, and keep its answer: ray gives SIGTERM one with a stack."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before, mask = signal.getsignal(number), signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        if _in_main_thread():
            signal.signal(number, before or signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextlib.contextmanager
def delaying_interrupts() -> Iterator[None]:
    """Answer Ctrl-C at the end of what happens inside: half a picture couldn't be taken back."""
    came = list[int]()
    with _handling(lambda number, _: came.append(number)):
        yield
    if came:
        signal.raise_signal(came[0])


@contextlib.contextmanager
def _handling(handler: Any, *numbers: signal.Signals) -> Iterator[None]:
    """Answer signals by `handler` while inside, in the main thread; `nohup` stays in force."""
    with contextlib.ExitStack() as restoring:
        for number in (numbers or _ENDING) if _in_main_thread() else ():
            before = signal.getsignal(number)
            if numbers or number == signal.SIGINT or before != signal.SIG_IGN:
                restoring.callback(signal.signal, number, before or signal.SIG_DFL)
                signal.signal(number, handler)
        yield


@contextlib.contextmanager
def alarm(deadline: float, error: type[BaseException]) -> Iterator[None]:
    """Raise an error inside at a time of `time.monotonic`, and every second after it.

    In the main thread only, where signals arrive. Compiled code ends first, and so does an import:
    a library that is imported by half can't be used in this process any more.
    """
    if deadline == math.inf or not _in_main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    is_over = False

    def ring(number: int, frame: FrameType | None) -> None:
        if not is_over and not _is_importing(frame):
            raise error

    with _handling(ring, signal.SIGALRM):
        try:
            signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 1e-6), 1.0)
            yield
        finally:
            is_over = True
            signal.setitimer(signal.ITIMER_REAL, 0)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def interrupt_or_end(number: int, frame: FrameType | None) -> NoReturn:
    """Answer Ctrl-C where nothing trains; a process that imports ends at once.

    Python would pass over an exception that is raised where an import takes its locks.
    """
    if _is_importing(frame):
        os._exit(130)
    raise KeyboardInterrupt


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _interrupts.append(number)
    raise Interrupted


# What a cell leaves behind: a cell is as if it were alone


def working_folder() -> str:
    """Return the working folder; empty where it has been deleted."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return ""


def _put_variables(os: Any, values: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(values)


def _put_filters(warnings: Any, filters: dict[Any, None]) -> None:
    warnings.filters[:] = filters
    warnings._filters_mutated()


# A generator that no import has seeded keeps no state: a cell that draws from it is as random as in
# a process of its own. If a cell seeds it, it is made random again.

_is_seeded = [False]
"""Whether an import has seeded Python's own generator, which doesn't tell."""


def _put_random(random: Any, state: Any) -> None:
    random.setstate(state) if _is_seeded[0] else random.seed()


def _numpy_state(numpy: Any) -> bytes:
    is_seeded = numpy.random.get_bit_generator().seed_seq is None
    return pickle.dumps(numpy.random.get_state(legacy=False)) if is_seeded else b""


def _put_numpy(numpy: Any, state: bytes) -> None:
    of = numpy.random  # a new bit generator would not count as seeded
    of.set_state(pickle.loads(state)) if state else of.set_bit_generator(of.MT19937())


def _torch_state(torch: Any) -> tuple[int, bytes]:
    seed = torch.initial_seed()  # an own one is small; the system gives 53 bits or more
    return seed, torch.get_rng_state().numpy().tobytes() if seed < 2**32 else b""


def _put_torch(torch: Any, before: tuple[int, bytes]) -> None:
    seed, state = before
    torch.manual_seed(seed) if state else torch.seed()  # on all devices
    if state:
        torch.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


_Access = str | Callable[..., Any]

_STATE: tuple[tuple[str, _Access, _Access], ...] = (
    ("os", lambda _: working_folder(), lambda os, folder: os.chdir(folder) if folder else None),
    ("os", lambda os: dict(os.environ), _put_variables),
    ("sys", lambda sys: dict.fromkeys(sys.path), lambda sys, path: sys.path.__init__(path)),
    ("sys", lambda sys: [*sys.argv], lambda sys, words: setattr(sys, "argv", words)),
    ("sys", "stdout", ""),
    ("sys", "stderr", ""),
    ("sys", "getrecursionlimit", "setrecursionlimit"),
    ("warnings", lambda warnings: dict.fromkeys(warnings.filters), _put_filters),
    (
        "multiprocessing",
        lambda processes: processes.get_start_method(allow_none=True),
        lambda processes, method: processes.set_start_method(method, force=True),
    ),
    ("locale", lambda of: of.setlocale(of.LC_ALL), lambda of, name: of.setlocale(of.LC_ALL, name)),
    (
        "decimal",
        lambda decimal: decimal.getcontext().prec,
        lambda decimal, digits: setattr(decimal.getcontext(), "prec", digits),
    ),
    ("random", "getstate", _put_random),
    ("numpy", "geterr", lambda numpy, kinds: numpy.seterr(**kinds)),
    ("numpy", _numpy_state, _put_numpy),
    ("torch", _torch_state, _put_torch),
    ("torch", "get_default_dtype", "set_default_dtype"),
    (
        "torch",
        lambda torch: str(torch.get_default_device()),
        lambda torch, name: torch.set_default_device(None if name == "cpu" else name),
    ),
    ("torch", "is_grad_enabled", "set_grad_enabled"),
    ("torch", "is_anomaly_enabled", "set_anomaly_enabled"),
    (
        "torch",
        lambda torch: not (torch.full((), 1e-40, dtype=torch.float32, device="cpu") * 1.0).item(),
        "set_flush_denormal",
    ),
    ("torch", "get_num_threads", "set_num_threads"),
    ("torch", "get_float32_matmul_precision", "set_float32_matmul_precision"),
    ("torch", "get_deterministic_debug_mode", "set_deterministic_debug_mode"),
    ("torch.backends.cudnn", "deterministic", ""),
    ("torch.backends.cudnn", "benchmark", ""),
)
"""What is put back: of which module, how it is read, and how it is set; by name, or by a function.

Without a setter it is an attribute. A dictionary is put together of what it was and of what imports
have added.
"""


def _state() -> dict[int, Any]:
    """What the modules that are imported have, by its place in `_STATE`."""
    found = dict[int, Any]()
    for place, (name, read, write) in enumerate(_STATE):
        if (module := sys.modules.get(name)) is not None:
            with contextlib.suppress(Exception):  # it is imported by half, or has no such thing
                value = getattr(module, read) if isinstance(read, str) else read(module)
                found[place] = value() if isinstance(read, str) and write else value
    return found


_before = dict[int, Any]()
"""What is put back when the last of the cells that are trained in this process has ended."""
_inside = [0]
_lock = threading.Lock()


@contextlib.contextmanager
def putting_back() -> Iterator[None]:
    """Put back at the end what is changed inside, for the process or for a library.

    What an import sets stays, as a module is imported once in a process. In threads it is put back
    when none of them is inside any more.
    """
    _end_left_children()
    with _lock:
        if not _inside[0]:
            _before.update(_state())
            _others.update(multiprocessing.active_children())
            sys.meta_path.insert(0, _imports)
        _inside[0] += 1
    try:
        yield
    finally:
        with _lock:
            _inside[0] -= 1
            if not _inside[0]:
                sys.meta_path.remove(_imports)
                _put_back()
                _left.update({*multiprocessing.active_children()} - {*_others})


def _put_back() -> None:
    now = _state()
    for place, value in _before.items():
        name, read, write = _STATE[place]
        # The order of filters and of paths counts, and dictionaries are equal in any.
        if now.get(place) != value or (isinstance(value, dict) and [*now[place]] != [*value]):
            with contextlib.suppress(Exception):  # such as a folder that is gone
                module: Any = sys.modules[name]
                if callable(write):
                    write(module, value)
                elif write:
                    getattr(module, write)(value)
                else:
                    setattr(module, str(read), value)
    _before.clear()


_loading = [0]
"""Imports that last: what a module imports in turn is kept with it.

PyTorch waits for good if it is asked for its device while it imports what it needs to answer that.
"""


class _Imports(MetaPathFinder):
    """It finds modules as the others do, and keeps what they set when a cell imports them."""

    def find_spec(self, *module: Any) -> ModuleSpec | None:
        """Return how the others load a module."""
        others = [each for each in sys.meta_path if each is not self]
        spec = next(filter(None, (each.find_spec(*module) for each in others)), None)
        loader: Any = spec and not _loading[0] and spec.loader
        if loader and not isinstance(loader, type):  # a class loads built-in modules
            loader.exec_module = keeping()(loader.exec_module)
        return spec


_imports = _Imports()


@contextlib.contextmanager
def keeping() -> Iterator[None]:
    """Keep for each cell what an import inside sets: a module is imported once in a process."""
    _loading[0] += 1
    earlier, drawn = _state(), random.getstate()
    own = [place for place in range(len(_STATE)) if earlier.get(place) == _before.get(place)]
    try:
        yield
        _is_seeded[0] |= random.getstate() != drawn
        for place, value in _state().items():
            if isinstance(value, dict) and place in _before:
                _before[place] |= dict(value.items() - earlier.get(place, {}).items())
            elif place in own:  # no cell had changed it
                _before[place] = value
    finally:
        _loading[0] -= 1


_others, _left = (weakref.WeakSet[multiprocessing.process.BaseProcess]() for _ in range(2))
"""Children of this process from before cells, and those that a cell has left running."""


@functools.cache
def _end_left_children() -> None:
    """Let this process end with what cells have left: Python waits for its children otherwise."""

    def end() -> None:
        for child in {*multiprocessing.active_children()} & {*_left}:
            child.terminate()

    multiprocessing.util.Finalize(None, end, exitpriority=0)


@contextlib.contextmanager
def keeping_random() -> Iterator[None]:
    """Leave the numbers that this process draws next as they were."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)


def _begin_fork() -> None:
    """Let a process that a cell forks answer signals as usual, and end soon after this one.

    A pool ends its processes by SIGTERM, and those of a worker that was killed would stay.
    """
    if _inside[0]:
        for number in _ENDING:
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, signal.SIG_DFL)
        _end_with(os.getppid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_fork)
