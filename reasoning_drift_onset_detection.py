"""Builder of Reasoning Drift Onset Detection v0.2: the CSV files as typed rows.

`load_dataset` with the repository's name reads the Parquet files that the card names; they are made
by this builder. Use the class for CSV files of your own, for a checkout, or to read a revision:

    ReasoningDriftOnsetDetection(config_name="test", data_dir="my_csvs").download_and_prepare()

It imports nothing of the project, since `datasets` 3 and older copy the file elsewhere to run it.
"""

import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import datasets
import fsspec

DESCRIPTION = (
    "A structured reasoning-state benchmark. Given a task, its governing constraints and the ordered steps of a reasoning "
    "trajectory, say which state the trajectory ends in, at which step a constraint is first lost, which family of failure "
    "that is, how far it is repaired, and which constraint is still broken at the end."
)
_VERSION = "0.2.0"
_EXPANDED_VERSION = "0.3.0"  # of 0.3.0-preview, what `datasets` can read as a version
HOMEPAGE = "https://huggingface.co/datasets/ClarusC64/reasoning-drift-onset-detection-v0.2"
CITATION = f"""@misc{{caplan2026reasoningdrift,
  author = {{Caplan, M.}},
  title = {{Reasoning Drift Onset Detection v0.2}},
  year = {{2026}},
  publisher = {{Clarus Invariant / SIOS}},
  version = {{{_VERSION}}},
  url = {{{HOMEPAGE}}}
}}"""

CONFIGS = {
    "default": ("train", "dev", "test"),
    **{split: (split,) for split in ("train", "dev", "test", "test_blind")},
    "expanded": ("expanded/train", "expanded/dev", "expanded/test"),
    "expanded_test_blind": ("expanded/test_blind",),
}
"""The files of every config, below `data` and without their endings; the last part of a name is that of the split."""

CONFIG_DESCRIPTIONS = {
    "default": "The labelled splits train, dev and test.",
    "train": "The labelled split train.",
    "dev": "The labelled split dev.",
    "test": "The labelled split test.",
    "test_blind": "The model inputs of test, without labels.",
    "expanded": "The labelled splits train, dev and test of the expanded release, 0.3.0-preview: contrast families of six.",
    "expanded_test_blind": "The model inputs of the expanded release's test, without labels.",
}
"""What every config holds."""

_BLANKS = " \t\r\n"
_WHOLE = re.compile(r"([1-9][0-9]{0,8})(?:\.0+)?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_CONSTRAINTS = 'a JSON array of texts, such as ["First rule.", "Second rule."]'
_TRAJECTORY = 'a JSON array of steps numbered 1, 2, 3, such as [{"step": 1, "text": "..."}]'
csv.field_size_limit(2**31 - 1)  # a trajectory may be longer than the 128 KiB that csv allows a cell


class MalformedCSV(ValueError):
    """Raised for a CSV file that can't be typed; says file, line, column, scenario, what was found and what was expected."""


class _Malformed(ValueError):
    """What is wrong with one cell: what was found, what was expected."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"found {found}, expected {expected}")


def _shown(value: object) -> str:
    """Return a value as a message shows it: on one line, cut to a readable length."""
    text = repr(dict(value) if isinstance(value, tuple) else value) if value != "" else "a blank"
    return text if len(text) <= 80 else text[:76] + "..." + text[-1]


# ---------------------------------------------------------------- cells
def _is_text(value: object) -> bool:
    """Tell whether a value is a text with something in it, and nothing that UTF-8 or a CSV file can't hold."""
    return isinstance(value, str) and bool(value.strip()) and not re.search("[\0\ud800-\udfff]", value)


def _text(cell: str) -> str:
    if not cell.strip(_BLANKS):
        raise _Malformed("a blank", "a text")
    return cell


def _label(cell: str) -> str:
    return _text(cell).strip(_BLANKS)


def _whole(cell: str) -> int | None:
    """Return a whole number from 1 on; `3.0`, which is what data frames make of 3 beside blanks, is one."""
    if not cell.strip(_BLANKS):
        return None
    match = _WHOLE.fullmatch(cell.strip(_BLANKS))
    if not match:
        raise _Malformed(_shown(cell), "a whole number from 1 on, such as 3, or a blank")
    return int(match[1])


def _fraction(cell: str) -> float | None:
    text = cell.strip(_BLANKS)
    if not text:
        return None
    if not _DECIMAL.fullmatch(text) or not 0 <= float(text) <= 1:
        raise _Malformed(_shown(cell), "a number from 0 to 1, or a blank")
    return float(text)


def _json(cell: str, expected: str) -> Any:
    """Return what a JSON cell holds, objects as tuples of pairs so that no repeated key is lost."""
    try:
        return json.loads(_text(cell), object_pairs_hook=tuple)
    except json.JSONDecodeError as error:
        near = _shown(cell[max(error.pos - 10, 0) : error.pos + 20])
        found = f"{near} where JSON breaks at character {error.pos + 1} ({error.msg})"
        raise _Malformed(found, f"{expected}; json.dumps writes such a cell") from None
    except (RecursionError, ValueError) as error:  # nested too deep, or a number of thousands of digits
        if isinstance(error, _Malformed):
            raise
        raise _Malformed("JSON beyond what can be read", expected) from None


def _constraints(cell: str) -> list[str]:
    texts = _json(cell, _CONSTRAINTS)
    if not isinstance(texts, list) or not texts:
        raise _Malformed(_shown(texts), _CONSTRAINTS)
    for number, text in enumerate(texts, 1):
        if not _is_text(text):
            raise _Malformed(f"{_shown(text)} as constraint {number}", _CONSTRAINTS)
    return texts


def _trajectory(cell: str) -> list[dict[str, Any]]:
    entries = _json(cell, _TRAJECTORY)
    if not isinstance(entries, list) or not entries:
        raise _Malformed(_shown(entries), _TRAJECTORY)
    steps = []
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, tuple) or sorted(key for key, _ in entry) != ["step", "text"]:
            raise _Malformed(f"{_shown(entry)} as entry {number}", _TRAJECTORY + ", each with exactly the keys step and text")
        step = dict(entry)
        if type(step["step"]) is not int or step["step"] != number:
            raise _Malformed(f"step {_shown(step['step'])} as entry {number}", f"the integer {number}")
        if not _is_text(step["text"]):
            raise _Malformed(f"{_shown(step['text'])} as text of step {number}", _TRAJECTORY)
        steps.append(step)
    return steps


def _constraint_id(text: str, constraints: list[str]) -> int | None:
    """Return the place, from 1, of a constraint given by its text."""
    if text == "none":
        return None
    if text not in constraints:
        raise _Malformed(_shown(text), "none, or the exact text of one of the row's constraints")
    return constraints.index(text) + 1


# ---------------------------------------------------------------- columns
class _Column(NamedTuple):
    """How a CSV column becomes a typed one."""

    csv_name: str
    parse: Callable[[str], Any]
    feature: Any

    @property
    def name(self) -> str:
        return self.csv_name.removesuffix("_json")


_STRING, _INT32, _FLOAT64 = (datasets.Value(dtype) for dtype in ("string", "int32", "float64"))

_INPUTS = (
    _Column("scenario_id", _label, _STRING),
    _Column("domain", _text, _STRING),
    _Column("task", _text, _STRING),
    _Column("constraints_json", _constraints, datasets.Sequence(_STRING)),
    _Column("trajectory_json", _trajectory, [{"step": _INT32, "text": _STRING}]),
)

_LABELS = (
    _Column("outcome_mode", _label, _STRING),
    _Column("first_drift_step", _whole, _INT32),
    _Column("mechanism_family", _label, _STRING),
    _Column("repair_outcome", _label, _STRING),
    _Column("residual_constraint_failure", _text, _STRING),
    _Column("drift_mechanism", _text, _STRING),
    _Column("correction_source", _label, _STRING),
    _Column("lost_constraint", _text, _STRING),
    _Column("visible_failure_step", _whole, _INT32),
    _Column("severity", _label, _STRING),
    _Column("recommended_repair", _label, _STRING),
    _Column("repair_instruction", _text, _STRING),
    _Column("trajectory_length", _whole, _INT32),
    _Column("relative_onset_position", _fraction, _FLOAT64),
    _Column("trajectory_structure", _text, _STRING),
    _Column("annotation_confidence", _fraction, _FLOAT64),
)

_CONSTRAINT_IDS = {"residual_constraint_id": "residual_constraint_failure", "lost_constraint_id": "lost_constraint"}
"""Derived columns, and the column of text that each is the id of."""

_MEMBER = re.compile(r"(RDOD[0-9]+-[0-9]{3,})[a-z]")


def split_of(file: str) -> str:
    """Return the split that a file of `CONFIGS` holds.

    >>> split_of("expanded/test_blind")
    'test_blind'
    """
    return file.rpartition("/")[2]


def _in_families(file: str) -> bool:
    return file.startswith("expanded/")


def _contrast_family(scenario_id: str) -> str | None:
    member = _MEMBER.fullmatch(scenario_id)
    return member[1] if member else None


def _columns(file: str) -> tuple[_Column, ...]:
    return _INPUTS if split_of(file) == "test_blind" else _INPUTS + _LABELS


def features(file: str) -> datasets.Features:
    """Return the types of the rows of a file of `CONFIGS`."""
    columns = _columns(file)
    ids = dict.fromkeys(_CONSTRAINT_IDS, _INT32) if len(columns) > len(_INPUTS) else {}
    family = {"contrast_family": _STRING} if _in_families(file) else {}
    return datasets.Features({**{column.name: column.feature for column in columns}, **ids, **family})


# ---------------------------------------------------------------- rows
def _records(content: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a CSV file that are not blank, each with the physical line on which it begins."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise MalformedCSV(f"{line}: file: found the byte 0x{content[error.start]:02x}, which is no UTF-8, expected CSV in UTF-8") from None
    if "\0" in text:
        raise MalformedCSV(f"{text[: text.index(chr(0))].count(chr(10)) + 1}: file: found a NUL byte, expected CSV in UTF-8")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise MalformedCSV(f"{line}: row: found a row that is no CSV ({error}), expected cells quoted as in RFC 4180") from None
        if any(cell.strip() for cell in cells):
            yield line, cells


def _check_header(header: list[str], columns: Sequence[_Column], line: int) -> None:
    wanted = [column.csv_name for column in columns]
    if sorted(header) != sorted(wanted):
        missing = [name for name in wanted if name not in header]
        odd = [name for name in dict.fromkeys(header) if name not in wanted or header.count(name) > 1]
        found = " and ".join([f"no column {', '.join(missing)}"] * bool(missing) + [f"unknown or repeated columns {', '.join(map(_shown, odd))}"] * bool(odd))
        raise MalformedCSV(f"{line}: header: found {found}, expected the columns {','.join(wanted)}")


def _typed(cells: dict[str, str], columns: Sequence[_Column], line: int) -> dict[str, Any]:
    """Return a row's typed values; raise `MalformedCSV` for the first cell that has none."""
    row: dict[str, Any] = {}
    scenario_id = cells["scenario_id"].strip(_BLANKS)
    try:
        for column in columns:
            name = column.csv_name
            row[column.name] = column.parse(cells[name])
        if len(columns) > len(_INPUTS):
            for derived, name in _CONSTRAINT_IDS.items():
                row[derived] = _constraint_id(row[name], row["constraints"])
    except _Malformed as error:
        raise MalformedCSV(f"{line}: {name}: {scenario_id + ': ' if scenario_id else ''}{error}") from None
    return row


def typed_rows(content: bytes, file: str) -> Iterator[dict[str, Any]]:
    """Yield the typed rows of a CSV file of `CONFIGS`; raise `MalformedCSV`, without the file's name, where it can't be typed."""
    columns = _columns(file)
    records = _records(content)
    line, first = next(records, (1, []))
    header = [name.strip(" \t") for name in first]
    _check_header(header, columns, line)
    count = 0
    for line, cells in records:
        if len(cells) != len(header):
            raise MalformedCSV(f"{line}: row: {cells[0].strip(_BLANKS)}: found {len(cells)} cells, expected {len(header)}, as in the header")
        count += 1
        row = _typed(dict(zip(header, cells, strict=True)), columns, line)
        yield {**row, "contrast_family": _contrast_family(row["scenario_id"])} if _in_families(file) else row
    if not count:
        raise MalformedCSV(f"{line}: file: found a header and no row, expected at least one row")


# ---------------------------------------------------------------- the builder
def _absolute(folder: str | os.PathLike[str]) -> str:
    """Return the absolute path of a local folder; an address stays as it is."""
    text = os.fspath(folder)
    return text.rstrip("/") if "://" in text else os.path.abspath(os.path.expanduser(text))


class ReasoningDriftOnsetDetection(datasets.GeneratorBasedBuilder):
    """Builds the typed rows from CSV files: those beside this file, below `base_path`, or in `data_dir`.

    `base_path` is a checkout or a revision (`hf://datasets/ORG/NAME@REVISION`); `data_dir` is a folder that
    holds `train.csv`, `dev.csv`, `test.csv` or `test_blind.csv` itself, as far as the config needs them.
    """

    VERSION = datasets.Version(_VERSION)
    DEFAULT_CONFIG_NAME = "default"
    BUILDER_CONFIGS = [
        datasets.BuilderConfig(name=name, version=_EXPANDED_VERSION if _in_families(CONFIGS[name][0]) else _VERSION, description=text)
        for name, text in CONFIG_DESCRIPTIONS.items()
    ]

    def __init__(
        self,
        cache_dir: str | None = None,
        dataset_name: str | None = None,
        config_name: str | None = None,
        hash: str | None = None,
        base_path: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Key the cache by what the CSV files hold, so that edited ones give new rows; otherwise as `datasets` does."""
        base_path = _absolute(base_path or os.path.dirname(__file__))
        if kwargs.get("data_dir") is not None:
            kwargs["data_dir"] = _absolute(kwargs["data_dir"])
        self._own = kwargs.get("data_dir") is not None
        self._folder = kwargs["data_dir"] if self._own else f"{base_path}/data"
        options = dict(kwargs.get("storage_options") or {})
        if self._folder.startswith("hf://") and kwargs.get("token") is not None:
            options["token"] = kwargs["token"]
        digest = hashlib.sha256((hash or "").encode())
        for name in CONFIGS.get(config_name or self.DEFAULT_CONFIG_NAME, ()):
            with fsspec.open(self._path(name), "rb", **options) as file:
                digest.update(hashlib.sha256(file.read()).digest())
        super().__init__(cache_dir, dataset_name, config_name, hash=digest.hexdigest(), base_path=base_path, **kwargs)

    @classmethod
    def get_all_exported_dataset_infos(cls) -> dict[str, Any]:
        """Return nothing: the sizes that a card beside this file tells need not be those of the CSV files that are read."""
        return {}

    def _path(self, file: str) -> str:
        return f"{self._folder}/{split_of(file) if self._own else file}.csv"

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description=DESCRIPTION,
            features=features(CONFIGS[self.config.name][0]),
            homepage=HOMEPAGE,
            license="MIT",
            citation=CITATION,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        generators = []
        for file in CONFIGS[self.config.name]:
            path = self._path(file)
            generators.append(datasets.SplitGenerator(name=split_of(file), gen_kwargs={"path": dl_manager.download(path), "name": path, "file": file}))
        return generators

    def _generate_examples(self, path: str, name: str, file: str) -> Iterator[tuple[int, dict[str, Any]]]:
        with open(path, "rb") as stream:  # `datasets` replaces `open` in this module, so that it reads addresses when streaming
            content = stream.read()
        try:
            yield from enumerate(typed_rows(content, file))
        except MalformedCSV as error:
            raise MalformedCSV(f"{name}:{error}") from None

    def download_and_prepare(self, *args: Any, **kwargs: Any) -> None:
        """Prepare the rows as `datasets` does; a malformed file is told in one error, without what `datasets` wraps around it."""
        try:
            super().download_and_prepare(*args, **kwargs)
        except Exception as error:
            if not isinstance(error.__cause__, MalformedCSV):
                raise
            message = str(error.__cause__)
        else:
            return
        raise MalformedCSV(message)
