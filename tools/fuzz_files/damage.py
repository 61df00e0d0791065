"""Sound files, and ways to damage them."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import fairfrontier as ff

Damage = Callable[[bytes, np.random.Generator], bytes]


def sound_files(folder: Path) -> dict[str, bytes]:
    """Return a table as CSV and Parquet and a saved stack, by the ending of their names."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.integers(0, 2, 80), "sex": rng.choice(["f", "m"], 80)})
    frame["race"] = rng.choice(["a", "ü"], 80)
    frame["a"], frame["b"] = rng.random(80), rng.random(80).round(2)
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    model = ff.FairStacksClassifier(alpha=1.0).fit(frame[["a", "b"]], frame["y"], sensitive_features=frame["sex"])
    ff.save(model, folder / "model.skops")
    return {name: (folder / f"{stem}.{name}").read_bytes() for stem, name in NAMES}


NAMES = (("rows", "csv"), ("rows", "parquet"), ("model", "skops"))


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


def edit_schema(content: bytes, rng: np.random.Generator) -> bytes:
    """Rewrite the schema of a saved model: other types, deep nesting, values of other kinds, a bomb of zeros."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as old:
            entries = {name: old.read(name) for name in old.namelist()}
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError, RuntimeError):  # damaged before
        return content
    kind = int(rng.integers(5))
    if kind == 0:
        entries["schema.json"] = b"[" * int(rng.integers(10, 10**5)) + b"]" * 10
    elif kind == 1:
        entries["zeros.npy"] = bytes(2**28)
    else:
        schema = json.loads(entries["schema.json"])
        _change(schema, rng, kind)
        entries["schema.json"] = json.dumps(schema).encode()
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as new:
        for name, value in entries.items():
            new.writestr(name, value)
    return result.getvalue()


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
    common: tuple[Damage, ...] = (flip_bits, cut, insert)
    if name == "skops":
        return (*common, edit_schema, edit_schema)
    return (*common, swap_words) if name == "csv" else common
