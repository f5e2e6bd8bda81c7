"""The typed rows of every split of both releases, as the builder makes them, and the Parquet files that hold them."""

import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rdod_metric.rules import lf_bytes
from reasoning_drift_onset_detection import CONFIGS, features, typed_rows

FILES = tuple(dict.fromkeys(file for files in CONFIGS.values() for file in files))
"""The files of rows of both releases, below `data` and without their endings: v0.2 first, and the labelled splits before the blind one."""

Tables = Mapping[str, pa.Table]
"""The typed rows of every file of `FILES`."""


def read_tables(root: Path) -> dict[str, pa.Table]:
    """Return the typed rows of every CSV file of the data, which must be valid."""
    return {file: _table(file, lf_bytes((root / f"data/{file}.csv").read_bytes())) for file in FILES}


def _table(file: str, content: bytes) -> pa.Table:
    # without the metadata of `datasets`, whose newest feature types older versions can't read
    schema = features(file).arrow_schema.remove_metadata()
    return pa.Table.from_pylist(list(typed_rows(content, file)), schema=schema)


def digest(tables: Iterable[pa.Table]) -> str:
    """Return a short digest of rows and their types, the same for every version of pyarrow."""
    content = [[[[field.name, str(field.type)] for field in table.schema], table.to_pylist()] for table in tables]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def parquet_files(root: Path, tables: Tables) -> dict[str, bytes]:
    """Return the Parquet file of every table, by its name relative to `root`.

    A file that is there and holds the same rows and types is kept as it is: the bytes of Parquet differ
    between versions of pyarrow.
    """
    files = {}
    for file, table in tables.items():
        name = f"data/{file}.parquet"
        present = (root / name).read_bytes() if (root / name).is_file() else b""
        files[name] = present if _holds(present, table) else _parquet(table)
    return files


def _holds(content: bytes, table: pa.Table) -> bool:
    try:
        present = pq.read_table(io.BytesIO(content))
    except (pa.ArrowException, OSError):
        return False
    return not present.schema.metadata and bool(present.equals(table))


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, store_schema=False)
    return buffer.getvalue()
