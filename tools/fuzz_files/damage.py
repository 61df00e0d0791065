"""Sound files, and ways to damage them."""

import io
import json
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import fairfrontier as ff

Damage = Callable[[bytes, np.random.Generator], bytes]


def sound_files(folder: Path) -> dict[str, bytes]:
    """Return a table as CSV, Parquet and Excel and a saved stack, by the ending of their names."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.integers(0, 2, 80), "sex": rng.choice(["f", "m"], 80)})
    frame["race"] = rng.choice(["a", "ü"], 80)
    frame["a"], frame["b"] = rng.random(80), rng.random(80).round(2)
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    frame.to_excel(folder / "rows.xlsx", index=False)
    model = ff.FairStacksClassifier(alpha=1.0).fit(frame[["a", "b"]], frame["y"], sensitive_features=frame["sex"])
    ff.save(model, folder / "model.skops")
    return {name: (folder / f"{stem}.{name}").read_bytes() for stem, name in NAMES}


NAMES = (("rows", "csv"), ("rows", "parquet"), ("rows", "xlsx"), ("model", "skops"))
# Bytes of an entry that is nothing but zeros.
_BOMB = 2**28
ODD_CELLS = (
    "", "nan", "inf", "-1e400", "0x1F", "1e309", "null", "NA", "-0", "0.5", "1", "0", "2", "true", "f", "m", "9" * 400,
    "1,5", "1;5", '"', "'=1+1", "\u202e", "\x00", "é" * 300, " 1", "1 ", "２", "0.5%", "1_000", "2020-01-01",
)  # fmt: skip


def flip_bits(content: bytes, rng: np.random.Generator) -> bytes:
    """Change up to twenty bytes."""
    array = np.frombuffer(content, dtype=np.uint8).copy()
    array[rng.integers(0, len(array), int(rng.integers(1, 21)))] ^= np.uint8(1) << np.uint8(rng.integers(0, 8))
    return array.tobytes()


def cut(content: bytes, rng: np.random.Generator) -> bytes:
    """Leave out the end, or a piece."""
    first, last = np.sort(rng.integers(0, len(content), 2))
    return content[:first] if rng.random() < 0.5 else content[:first] + content[last:]


def insert(content: bytes, rng: np.random.Generator) -> bytes:
    """Put bytes between: noise, quotes, line ends, zeros, or a copy of a piece."""
    at = int(rng.integers(0, len(content)))
    first, last = np.sort(rng.integers(0, len(content), 2))
    odd = "é\ud83d".encode("utf-8", "surrogatepass")
    pieces = (rng.bytes(int(rng.integers(1, 200))), b'"', b"\r\n,,,\n", b"\x00" * 50, content[first:last], odd)
    return content[:at] + pieces[int(rng.integers(len(pieces)))] + content[at:]


def swap_words(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace numbers and words of a table, or of a schema, by odd ones."""
    words = [*b"|nan|inf|-1e400|0x1F|1e309|null|{}|[[[[[[[[|builtins|eval".split(b"|"), b"9" * 400]
    parts = content.split(b"," if b"," in content else b" ")
    for _ in range(int(rng.integers(1, 5))):
        parts[int(rng.integers(len(parts)))] = words[int(rng.integers(len(words)))]
    return (b"," if b"," in content else b" ").join(parts)


def flip_few(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one to three bits."""
    array = np.frombuffer(content, dtype=np.uint8).copy()
    for at in rng.integers(0, len(array), int(rng.integers(1, 4))):
        array[at] ^= np.uint8(1) << np.uint8(rng.integers(0, 8))
    return array.tobytes()


def swap_cells(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace cells of a CSV table, names of columns too, or exchange, repeat or leave out whole columns or rows."""
    rows = [line.split(b",") for line in content.split(b"\n")]
    kind = int(rng.integers(6))
    if kind < 3:
        for _ in range(int(rng.integers(1, 6))):
            row = rows[0 if rng.random() < 0.2 else int(rng.integers(len(rows)))]
            row[int(rng.integers(len(row)))] = ODD_CELLS[int(rng.integers(len(ODD_CELLS)))].encode()
    elif kind == 3:  # one cell for a whole column
        odd, column = ODD_CELLS[int(rng.integers(len(ODD_CELLS)))].encode(), int(rng.integers(len(rows[0])))
        rows[1:] = [[*row[:column], odd, *row[column + 1 :]] for row in rows[1:]]
    elif kind == 4:
        order = rng.integers(0, len(rows[0]), len(rows[0])).tolist()
        rows = [[row[j] for j in order if j < len(row)] for row in rows]
    else:
        rows = [rows[0], *(rows[i] for i in rng.integers(0, len(rows), int(rng.integers(0, len(rows)))))]
    joined = [
        (b";", b"\t", b",", b",", b",")[int(rng.integers(5))],
        (b"\r\n", b"\r", b"\n", b"\n")[int(rng.integers(4))],
    ]
    return joined[1].join(joined[0].join(row) for row in rows)


def odd_types(content: bytes, rng: np.random.Generator) -> bytes:
    """Write a Parquet table with a column of another type, name or place."""
    try:
        table = pq.read_table(io.BytesIO(content))
    except (pa.ArrowException, OSError):  # damaged before
        return content
    if table.num_columns == 0:
        return content
    at, n = int(rng.integers(table.num_columns)), table.num_rows
    numbers = rng.integers(0, 2, n)
    odd = (
        lambda: pa.array([[int(one)] for one in numbers]),
        lambda: pa.array([{"a": int(one)} for one in numbers]),
        lambda: pa.nulls(n),
        lambda: pa.array([None if one else 0.5 for one in numbers]),
        lambda: pa.array(numbers).cast(pa.decimal128(25, 2)),
        lambda: pa.array(numbers.astype("datetime64[s]")),
        lambda: pa.array(numbers.astype("timedelta64[ms]")),
        lambda: pa.array(numbers.astype(str)).dictionary_encode(),
        lambda: pa.array([bytes([one]) for one in numbers]),
        lambda: pa.array(numbers == 1),
        lambda: pa.array(numbers.astype(np.float16)),
        lambda: pa.array(numbers.astype(np.uint64) * np.uint64(2**63)),
        lambda: pa.array(numbers * 1e308),
        lambda: pa.array(np.where(numbers == 1, np.nan, np.inf)),
        lambda: pa.array(["a" * 10_000] * n),
        lambda: pa.array([f"{i}" for i in range(n)]),
    )[int(rng.integers(16))]
    table = table.set_column(at, table.column_names[at], odd())
    kind = int(rng.integers(6))
    if kind == 0:
        table = table.slice(0, int(rng.integers(0, 3)))
    elif kind == 1:  # a name twice, or an odd one
        names = [*table.column_names]
        names[at] = [names[0], "", "\n", "y", "é" * 300, "a,b"][int(rng.integers(6))]
        table = table.rename_columns(names)
    elif kind == 2:
        table = table.select(rng.permutation(table.num_columns)[: int(rng.integers(0, table.num_columns + 1))].tolist())
    result = io.BytesIO()
    pq.write_table(table, result, row_group_size=int(rng.integers(1, 100)))
    return result.getvalue()


def edit_archive(content: bytes, rng: np.random.Generator) -> bytes:
    """Damage one entry of an archive, such as a sheet of an Excel file, and pack it again."""
    entries = _entries(content)
    if entries:
        name = sorted(entries)[int(rng.integers(len(entries)))]
        way = (flip_few, cut, insert, _swap_xml)[int(rng.integers(4))]
        entries[name] = way(entries[name] or b" ", rng)
    return _packed(entries) if entries else content


def _swap_xml(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace the text of some elements."""
    parts = content.split(b"<v>")
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(len(parts)))
        odd = ODD_CELLS[int(rng.integers(len(ODD_CELLS)))].encode()
        parts[at] = odd + parts[at][max(parts[at].find(b"</v>"), 0) :] if at else parts[at]
    return b"<v>".join(parts)


def _entries(content: bytes) -> dict[str, bytes]:
    """Return the entries of an archive; none where it is damaged already."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as old:
            return {name: old.read(name) for name in old.namelist() if old.getinfo(name).file_size < _BOMB}
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, NotImplementedError, RuntimeError):
        return {}


def _packed(entries: dict[str, bytes], begun: bytes = b"") -> bytes:
    result = io.BytesIO(begun)
    with zipfile.ZipFile(result, "a" if begun else "w", zipfile.ZIP_DEFLATED) as new:
        for name, value in entries.items():
            new.writestr(name, value)
    return result.getvalue()


@cache
def bomb() -> bytes:
    """Return an archive with many zeros."""
    return _packed({"zeros.npy": bytes(_BOMB)})


def edit_schema(content: bytes, rng: np.random.Generator) -> bytes:
    """Rewrite the schema of a saved model: other types, deep nesting, values of other kinds, a bomb of zeros."""
    entries = _entries(content)
    if "schema.json" not in entries:  # damaged before
        return content
    kind = int(rng.integers(5))
    if kind == 0:
        entries["schema.json"] = b"[" * int(rng.integers(10, 10**5)) + b"]" * 10
    elif kind == 1:
        return _packed(entries, bomb())
    else:
        try:
            schema = json.loads(entries["schema.json"])
        except (ValueError, RecursionError):  # damaged before
            return content
        _change(schema, rng, kind)
        entries["schema.json"] = json.dumps(schema).encode()
    return _packed(entries)


def _change(schema: object, rng: np.random.Generator, kind: int) -> None:
    """Change one place of a schema."""
    places: list[tuple[dict, str]] = []
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            places += [(one, key) for key in one]
            waiting += list(one.values())
        elif isinstance(one, list):
            waiting += one
    place, key = places[int(rng.integers(len(places)))]
    if kind == 2:
        place[key] = [None, -1, 1e300, "os.system", [], {}, True, "builtins"][int(rng.integers(8))]
    elif kind == 3:
        deep: object = place[key]
        for _ in range(int(rng.integers(5, 400))):
            deep = {"content": deep}
        place[key] = deep
    else:
        named = [(p, k) for p, k in places if k in ("__class__", "__module__", "__loader__")]
        place, key = named[int(rng.integers(len(named)))]
        odd = ["system", "os", "posix", "subprocess", "Popen", "eval", "FunctionNode", "list", "numpy"]
        place[key] = odd[int(rng.integers(len(odd)))]


def damages(name: str) -> tuple[Damage, ...]:
    """Return the ways to damage a file of a kind."""
    of_kind: dict[str, tuple[Damage, ...]] = {
        "csv": (swap_words, swap_cells, swap_cells, swap_cells),
        "parquet": (odd_types, odd_types, odd_types),
        "xlsx": (edit_archive, edit_archive, edit_archive),
        "skops": (edit_archive, edit_schema, edit_schema, edit_schema),
    }
    return (flip_bits, flip_few, cut, insert, *of_kind[name])
