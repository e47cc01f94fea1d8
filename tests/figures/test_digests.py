"""Digests of cells: held to a calculation by hand, and to nothing but the numbers."""

from __future__ import annotations

import hashlib
import json
import struct

import numpy as np
import pandas as pd
import pytest

from overfit_cli.figures.draw import digest_of_numbers, key_of_cells

KERNELS = ["softmax", "gaussian", "softmax"]
COLUMNS = {"key": ["b", "a", "c"], "kernel": KERNELS, "n": [2, 1, 3]}
CELLS = pd.DataFrame({**COLUMNS, "test_loss": [0.5, 0.25, np.nan], "seconds": [1.0, 2.0, 3.0]})
STEPS = pd.DataFrame({"key": ["a", "a", "b"], "step": [1, 0, 0], "train_loss": [0.1, 0.2, 0.3]})


def test_a_digest_is_that_of_the_bytes_in_order() -> None:
    by_hand = b"3 rows\n"
    by_hand += b"kernel\n" + json.dumps(["gaussian", "softmax", "softmax"]).encode()
    by_hand += b"key\n" + json.dumps(["a", "b", "c"]).encode()
    by_hand += b"n\n" + struct.pack("<3d", 1, 2, 3)
    by_hand += b"test_loss\n" + struct.pack("<2d", 0.25, 0.5) + np.array([np.nan]).tobytes()
    assert digest_of_numbers(CELLS) == hashlib.sha256(by_hand).hexdigest()
    by_hand += b"3 rows\n" + b"key\n" + json.dumps(["a", "a", "b"]).encode()
    by_hand += b"step\n" + struct.pack("<3d", 0, 1, 0)
    by_hand += b"train_loss\n" + struct.pack("<3d", 0.2, 0.1, 0.3)
    assert digest_of_numbers(CELLS, STEPS) == hashlib.sha256(by_hand).hexdigest()
    assert key_of_cells(CELLS) == hashlib.sha256(b"a\nb\nc").hexdigest()[:20]


SAME = {
    "rows": CELLS.iloc[::-1],
    "columns": CELLS[list(CELLS.columns)[::-1]],
    "seconds": CELLS.assign(seconds=9.0),
    "no seconds": CELLS.drop(columns="seconds"),
    "real": CELLS.assign(n=CELLS["n"].astype(float)),
    "nullable": CELLS.assign(n=CELLS["n"].astype("Int64")),
    "nothing": CELLS.assign(measured_since=np.nan, said_since=None),
    "objects": CELLS.assign(kernel=CELLS["kernel"].astype(object)),
}
OTHERS = {
    "last bit": CELLS.assign(test_loss=[0.5, np.nextafter(0.25, 1), np.nan]),
    "nan": CELLS.assign(test_loss=[0.5, 0.25, 0.0]),
    "swapped": CELLS.assign(kernel=KERNELS[::2] + KERNELS[1:2]),
    "missing": CELLS.assign(kernel=pd.Series(["softmax", None, "softmax"])),
    "name": CELLS.rename(columns={"test_loss": "train_loss"}),
    "fewer": CELLS.iloc[:2],
    "more": CELLS.assign(another=1.0),
}


@pytest.mark.parametrize("what", [*SAME, *OTHERS])
def test_another_number_alone_gives_another_digest(what: str) -> None:
    cells = {**SAME, **OTHERS}[what]
    assert (digest_of_numbers(cells) == digest_of_numbers(CELLS)) == (what in SAME)
    assert what in OTHERS or key_of_cells(cells) == key_of_cells(CELLS)


def test_seconds_matter_where_they_are_asked_for_and_texts_cannot_run_into_each_other() -> None:
    times = [digest_of_numbers(CELLS.assign(seconds=s), seconds=True) for s in (1.0, 9.0)]
    texts = [CELLS.assign(kernel=each) for each in (["a,b", "c", "d"], ["a", "b,c", "d"])]
    assert len({*times, *map(digest_of_numbers, texts)}) == 4
