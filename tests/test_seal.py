"""Sealed labels: what is published gives nothing away, what is revealed must be what was committed to."""

import hashlib
import json
import stat
from pathlib import Path

import pytest
from conftest import ROOT, Command
from samples import BLIND, BOM, GOLD, Edit, edited, lines, read_rows

from scorer import seal


def published(command: Command) -> str:
    run = command("scorer/seal.py", "publish", "gold.csv", "--blind", "out/blind.csv", "--commitment", "out/seal.json", "--salts", "private/salts.json")
    assert (run.status, run.err) == (0, "")
    return run.out


def verified(command: Command, labelled: str = "gold.csv"):
    return command("scorer/seal.py", "verify", labelled, "--commitment", "out/seal.json", "--salts", "private/salts.json")


def test_publish_then_verify(files: Path, command: Command) -> None:
    assert published(command).startswith("sealed 8 scenarios: publish out/blind.csv and out/seal.json; keep gold.csv and private/salts.json private")
    assert (files / "out/blind.csv").read_bytes() == BLIND
    run = verified(command)
    assert (run.status, run.out, run.err) == (0, "verified: gold.csv is the file committed to, 8 scenarios\n", "")


def test_the_blind_file_is_the_published_one_byte_for_byte() -> None:
    rows, problems = seal.read_labelled(ROOT / "data/test.csv")
    assert not problems and seal.blind_csv(rows.values()).encode() == (ROOT / "data/test_blind.csv").read_bytes()


def test_the_salts_are_for_their_owner_alone(files: Path, command: Command) -> None:
    published(command)
    assert stat.S_IMODE((files / "private/salts.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((files / "out/seal.json").stat().st_mode) & 0o044


def test_the_digests_can_be_made_again_with_nothing_but_a_hash(files: Path, command: Command) -> None:
    published(command)
    commitment, salts = (json.loads((files / name).read_text()) for name in ("out/seal.json", "private/salts.json"))
    assert commitment["scheme"] == salts["scheme"] == "rdod-seal-1"
    whole = hashlib.sha256(b"rdod-seal-1\0" + bytes.fromhex(salts["file"]["salt"]) + GOLD).hexdigest()
    assert commitment["file"]["sha256"] == whole
    for cells in read_rows(GOLD)[1:]:
        salt = bytes.fromhex(salts["scenarios"][cells[0]]["salt"])
        row = json.dumps(cells, separators=(",", ":")).encode()
        assert commitment["scenarios"][cells[0]]["sha256"] == hashlib.sha256(b"rdod-seal-1\0" + salt + row).hexdigest()


def test_what_is_published_tells_no_label(files: Path, command: Command) -> None:
    """The commitment to another labelling under the same salts has the same form, and nothing of it is a hash without its salt."""
    published(command)
    commitment = (files / "out/seal.json").read_text()
    salts, _ = seal.read_seal(files / "private/salts.json", "salt")
    header, *rows = read_rows(GOLD)
    inputs = {cell for row in rows for cell in row[:5]}
    for row in rows:
        for cell in set(row[5:]) - inputs:
            assert len(cell) < 4 or cell not in commitment
            assert hashlib.sha256(cell.encode()).hexdigest() not in commitment
        assert hashlib.sha256(json.dumps(row, separators=(",", ":")).encode()).hexdigest() not in commitment
    assert salts and not any(value in commitment for value in (salts.file, *salts.scenarios.values()))
    assert len({salts.file, *salts.scenarios.values()}) == 9
    assert set(json.loads(commitment)["scenarios"]) == {row[0] for row in rows}


def test_two_seals_of_one_file_have_nothing_in_common(files: Path) -> None:
    rows, _ = seal.read_labelled(files / "gold.csv")
    one, other = (seal.commit(GOLD, rows, seal.new_salts(rows)) for _ in range(2))
    assert one.file != other.file and not set(one.scenarios.values()) & set(other.scenarios.values())


@pytest.mark.parametrize("spelling", [lambda content: content.replace(b"\n", b"\r\n"), lambda content: BOM + content])
def test_other_line_ends_are_the_same_file(spelling: Edit, files: Path, command: Command) -> None:
    published(command)
    (files / "gold.csv").write_bytes(spelling(GOLD))
    assert verified(command).status == 0


def test_a_changed_label_is_named(files: Path, command: Command) -> None:
    published(command)
    (files / "gold.csv").write_bytes(edited(GOLD, 24, severity="high" if b"high" not in GOLD.splitlines()[4] else "low"))
    run = verified(command)
    assert run.status == 1
    assert run.out.startswith("gold.csv:5: row: RDOD2-024: found another row than the one committed to") and run.out.count("\n") == 1
    assert "verified" not in run.out


@pytest.mark.parametrize("column", ["task", "annotation_confidence", "trajectory_structure"])
def test_every_cell_is_committed_to(column: str, files: Path, command: Command) -> None:
    published(command)
    (files / "gold.csv").write_bytes(edited(GOLD, 21, **{column: "0.123" if column == "annotation_confidence" else "Something else."}))
    run = verified(command)
    assert run.status == 1 and "[seal-broken]" in run.out and "RDOD2-021" in run.out


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        (lines(GOLD, 1, 2, 3, 4, 5, 6, 7, 8), "[missing-scenario]"),
        (lines(GOLD, 1, 3, 2, 4, 5, 6, 7, 8, 9), "gold.csv: file: found the same rows in another order or spelling"),
        (GOLD + GOLD.splitlines(keepends=True)[-1].replace(b"RDOD2-028", b"RDOD2-099"), "[unknown-scenario]"),
        (GOLD.replace(b"no_drift", b"no_dirft", 1), "[invalid-label]"),
    ],
)
def test_another_file_is_refused(content: bytes, finding: str, files: Path, command: Command) -> None:
    published(command)
    (files / "gold.csv").write_bytes(content)
    run = verified(command)
    assert run.status == 1 and finding in run.out


def test_other_salts_prove_nothing(files: Path, command: Command) -> None:
    published(command)
    (files / "private/salts.json").unlink()
    (files / "first.json").write_bytes((files / "out/seal.json").read_bytes())
    published(command)
    (files / "out/seal.json").write_bytes((files / "first.json").read_bytes())
    assert verified(command).out.count("[seal-broken]") == 8
    salts = json.loads((files / "private/salts.json").read_text())
    del salts["scenarios"]["RDOD2-021"]
    (files / "private/salts.json").write_text(json.dumps(salts))
    assert "salts of other scenarios" in verified(command).out


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"no JSON",
        b"\xff",
        b"[" * 100_000,
        b'{"scheme": "rdod-seal-2", "file": {"sha256": ""}, "scenarios": {}}',
        b'{"scheme": "rdod-seal-1", "file": {"sha256": "12"}, "scenarios": {}}',
    ],
)
def test_what_is_no_commitment_is_said_to_be_none(content: bytes, files: Path, command: Command) -> None:
    published(command)
    (files / "out/seal.json").write_bytes(content)
    run = verified(command)
    assert run.status == 1 and run.out.startswith("out/seal.json: file: ") and "[not-a-seal]" in run.out


def test_a_file_with_findings_is_not_sealed(files: Path, command: Command) -> None:
    (files / "gold.csv").write_bytes(GOLD.replace(b"no_drift", b"no_dirft", 1))
    run = command("scorer/seal.py", "publish", "gold.csv", "--blind", "b.csv", "--commitment", "c.json", "--salts", "s.json")
    assert run.status == 1 and not any((files / name).exists() for name in ("b.csv", "c.json", "s.json"))


@pytest.mark.parametrize(
    "names", [("b.csv", "c.json", "c.json"), ("gold.csv", "c.json", "s.json"), ("b.csv", "folder", "s.json"), ("b.csv", "gold.csv/c.json", "s.json")]
)
def test_files_that_stand_in_the_way_stop_it_and_leave_nothing(names: tuple[str, str, str], files: Path, command: Command) -> None:
    (files / "folder").mkdir()
    blind, commitment, salts = names
    run = command("scorer/seal.py", "publish", "gold.csv", "--blind", blind, "--commitment", commitment, "--salts", salts)
    assert run.status == 2 and run.err.startswith("error: ")
    assert (files / "gold.csv").read_bytes() == GOLD and not (files / "s.json").exists()


def test_salts_are_never_overwritten(files: Path, command: Command) -> None:
    published(command)
    before = (files / "private/salts.json").read_bytes()
    run = command("scorer/seal.py", "publish", "gold.csv", "--blind", "out/blind.csv", "--commitment", "out/seal.json", "--salts", "private/salts.json")
    assert run.status == 2 and "is there already" in run.err and (files / "private/salts.json").read_bytes() == before
    assert verified(command).status == 0
