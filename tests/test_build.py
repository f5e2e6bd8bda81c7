"""The generated files: fresh as they are committed, built anew from edited CSV files, and free of labels where they must be."""

import hashlib
import io
import json
from importlib import resources

import datasets
import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from conftest import ROOT
from datasets.info import DatasetInfosDict
from datasets.utils.metadata import MetadataConfigs, known_task_ids
from huggingface_hub import DatasetCard
from samples import all_cells, csv_bytes, edited, read_rows

from rdod_metric.rules import VOCABULARIES
from reasoning_drift_onset_detection import CONFIG_DESCRIPTIONS, CONFIGS, features, split_of
from tools.build import CANARY
from tools.card import with_front_matter
from tools.typed import FILES

GENERATED = ("README.md", "audit.json", "dataset_infos.json", "croissant.json", "manifest.json")
"""What changes with the rows of any split, beside its Parquet file."""

INPUTS = ["scenario_id", "domain", "task", "constraints", "trajectory"]
BLIND_CONFIGS = ("test_blind", "expanded_test_blind")


def change(path, edit):
    path.write_bytes(edit(path.read_bytes()))


def stale(command, checkout):
    """Return the files that --check finds stale."""
    checked = command(checkout / "tools/build.py", "--check")
    lines = checked.out.splitlines()
    assert checked.status == (1 if lines else 0) and all("[stale-file]" in line for line in lines), checked
    return {line.partition(":")[0] for line in lines}


# ---------------------------------------------------------------- building
def test_what_is_committed_is_fresh(command):
    assert stale(command, ROOT) == set()


def test_line_ends_of_another_system_are_fresh(command, checkout):
    for path in checkout.rglob("*"):
        if path.suffix in (".csv", ".json", ".md", ".cff"):
            change(path, lambda content: content.replace(b"\n", b"\r\n"))
    assert stale(command, checkout) == set()


def test_an_edited_cell_makes_its_split_stale_until_the_next_build(command, checkout):
    change(checkout / "data/train.csv", lambda content: edited(content, 1, task="Say where the sums go astray."))
    assert stale(command, checkout) == {"data/train.parquet", *GENERATED}
    built = command(checkout / "tools/build.py")
    assert built.status == 0 and set(built.out.split()) == {"wrote", "data/train.parquet", *GENERATED}
    assert stale(command, checkout) == set() and command(checkout / "tools/build.py").out == "everything is fresh\n"
    assert pq.read_table(checkout / "data/train.parquet")["task"][0].as_py() == "Say where the sums go astray."


def test_an_edited_expanded_file_leaves_the_other_release_as_it_is(command, checkout):
    path = checkout / "data/expanded/train.csv"
    change(path, lambda content: all_cells(content, "domain", lambda cell: f"{cell}_abroad"))
    before = {name: (checkout / name).read_bytes() for name in ("data/train.parquet", "rdod_metric/test.csv", "baseline/example_predictions.csv")}
    wanted = {"data/expanded/train.parquet", *GENERATED}
    assert stale(command, checkout) == wanted
    assert set(command(checkout / "tools/build.py").out.split()) == {"wrote", *wanted}
    assert {name: (checkout / name).read_bytes() for name in before} == before
    assert command(checkout / "scorer/validate.py", "repository").status == 0


def test_the_manifest_names_both_releases_and_the_domains_that_only_the_expanded_test_has(command, checkout):
    manifest = json.loads((ROOT / "manifest.json").read_bytes())
    assert {name: release["version"] for name, release in manifest["releases"].items()} == {"v0.2": "0.2.0", "expanded": "0.3.0-preview"}
    assert manifest["releases"]["expanded"]["version"] in CONFIG_DESCRIPTIONS["expanded"]
    train, dev, test = ({row[1] for row in read_rows((ROOT / f"data/expanded/{split}.csv").read_bytes())[1:]} for split in ("train", "dev", "test"))
    assert manifest["held_out_domains"] == sorted(test - train - dev)
    domain = manifest["held_out_domains"][0]
    change(checkout / "data/expanded/dev.csv", lambda content: all_cells(content, "domain", lambda _: domain))
    assert command(checkout / "tools/build.py").status == 0
    assert domain not in json.loads((checkout / "manifest.json").read_bytes())["held_out_domains"]


def test_the_schema_takes_the_rows_of_both_releases_and_no_other_family():
    schema = json.loads((ROOT / "schema.json").read_bytes())
    validator = jsonschema.Draft202012Validator(schema)
    for file in FILES:
        row = pq.read_table(ROOT / f"data/{file}.parquet").to_pylist()[0]
        assert validator.is_valid(row), file
        assert not validator.is_valid({**row, "contrast_family": "17"}), file


def test_a_row_more_needs_a_rationale_and_a_build(command, checkout):
    header, *rows = read_rows((checkout / "data/dev.csv").read_bytes())
    row = dict(zip(header, rows[0], strict=True))
    steps = [{**step, "text": f"Otherwise: {step['text']}"} for step in json.loads(row["trajectory_json"])]
    row |= {"scenario_id": "RDOD2-037", "task": "Another task.", "trajectory_json": json.dumps(steps)}
    (checkout / "data/dev.csv").write_bytes(csv_bytes([header, *rows, list(row.values())]))
    change(checkout / "annotations/rationales.csv", lambda content: content + b"RDOD2-037,Because of what step 8 leaves out.\n")
    assert command(checkout / "tools/build.py").status == 0
    assert command(checkout / "scorer/validate.py", "repository").status == 0
    configs = {info["config_name"]: info["splits"] for info in DatasetCard.load(checkout / "README.md").data.dataset_info}
    assert [split["num_examples"] for split in configs["default"]] == [16, 9, 12] and configs["dev"][0]["num_examples"] == 9
    assert json.loads((checkout / "manifest.json").read_bytes())["files"]["data/dev.parquet"]["rows"] == 9


def test_data_with_findings_is_not_built_on(command, checkout):
    change(checkout / "data/test.csv", lambda content: edited(content, 25, constraints_json="['First.']"))
    built = command(checkout / "tools/build.py")
    assert built.status == 1 and "test.csv:2: constraints_json: RDOD2-025: " in built.out
    assert (checkout / "data/test.parquet").read_bytes() == (ROOT / "data/test.parquet").read_bytes()


@pytest.mark.parametrize("name", ["data/dev.parquet", "README.md", "schema.json", *GENERATED[1:]])
def test_a_generated_file_that_is_gone_is_stale(command, checkout, name):
    (checkout / name).unlink()
    dependent = {"audit.json": {"README.md"}}.get(name, {"croissant.json", "manifest.json"} if name.endswith(".parquet") else set())
    assert stale(command, checkout) - dependent == {name}


# ---------------------------------------------------------------- Parquet
def as_written(table, **options):
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def test_parquet_has_the_types_of_the_builder_and_nothing_of_a_library():
    for file in FILES:
        table = pq.read_table(ROOT / f"data/{file}.parquet")
        assert table.schema.equals(features(file).arrow_schema) and table.schema.metadata is None
        assert pq.read_metadata(ROOT / f"data/{file}.parquet").metadata is None


def test_parquet_of_another_writer_with_the_same_rows_is_kept(command, checkout):
    path = checkout / "data/dev.parquet"
    other = as_written(pq.read_table(path), compression="gzip", store_schema=False)
    assert other != path.read_bytes()
    path.write_bytes(other)
    assert stale(command, checkout) == {"croissant.json", "manifest.json"}  # they name its checksum
    assert command(checkout / "tools/build.py").status == 0
    assert path.read_bytes() == other
    entry = json.loads((checkout / "manifest.json").read_bytes())["files"]["data/dev.parquet"]
    assert entry == {"rows": 8, "bytes": len(other), "sha256": hashlib.sha256(other).hexdigest()}


@pytest.mark.parametrize(
    "change_table",
    [
        pytest.param(lambda table: table.slice(1), id="a row less"),
        pytest.param(lambda table: table.take(list(reversed(range(table.num_rows)))), id="another order"),
        pytest.param(lambda table: table.set_column(6, "first_drift_step", table["first_drift_step"].cast(pa.int64())), id="another type"),
        pytest.param(lambda table: table.select(list(reversed(table.column_names))), id="other columns"),
        pytest.param(lambda table: table.replace_schema_metadata({"huggingface": "{}"}), id="metadata"),
    ],
)
def test_parquet_with_other_content_is_stale(command, checkout, change_table):
    path = checkout / "data/dev.parquet"
    path.write_bytes(as_written(change_table(pq.read_table(path))))
    assert "data/dev.parquet" in stale(command, checkout)


def test_parquet_that_is_broken_off_is_written_anew(command, checkout):
    change(checkout / "data/dev.parquet", lambda content: content[:-100])
    assert "data/dev.parquet" in stale(command, checkout)
    assert command(checkout / "tools/build.py").status == 0
    assert pq.read_table(checkout / "data/dev.parquet").num_rows == 8


# ---------------------------------------------------------------- the blind split
@pytest.mark.parametrize(("folder", "derived"), [("data", []), ("data/expanded", ["contrast_family"])])
def test_the_blind_split_holds_no_label(folder, derived):
    inputs = [*INPUTS, *derived]
    blind, test = (pq.read_table(ROOT / folder / f"{split}.parquet") for split in ("test_blind", "test"))
    assert blind.column_names == inputs and blind.equals(test.select(inputs))
    of_labels = [name for name in test.column_names if name not in inputs]
    assert not set(read_rows((ROOT / folder / "test_blind.csv").read_bytes())[0]) & set(of_labels)
    labels = {value for column in of_labels for value in test[column].to_pylist() if isinstance(value, str)}
    labels |= {label for vocabulary in VOCABULARIES.values() for label in vocabulary}
    told = {label for label in labels if "_" in label or " " in label} - {text for texts in blind["constraints"].to_pylist() for text in texts}
    assert len(told) > 50
    places = {
        "the rows": json.dumps(blind.to_pylist(), ensure_ascii=False),
        "test_blind.csv": (ROOT / folder / "test_blind.csv").read_text(encoding="utf-8"),
        "the bytes of Parquet": as_written(blind, compression="none").decode("utf-8", "replace"),
    }
    for place, text in places.items():
        assert [label for label in told if label in text] == [], place


def test_what_describes_the_blind_split_names_no_label_column():
    croissant = json.loads((ROOT / "croissant.json").read_bytes())
    described = {
        **{f"{config} in dataset_infos.json": list(json.loads((ROOT / "dataset_infos.json").read_bytes())[config]["features"]) for config in BLIND_CONFIGS},
        **{
            f"{info['config_name']} in README.md": [feature["name"] for feature in info["features"]]
            for info in card().dataset_info
            if info["config_name"] in BLIND_CONFIGS
        },
        **{
            records["name"]: [field["name"].removesuffix("_json") for field in records["field"]]
            for records in croissant["recordSet"]
            if "blind" in records["name"]
        },
    }
    assert len(described) == 8
    for place, names in described.items():
        assert names == [*INPUTS, *["contrast_family"] * (place.startswith("expanded_") and not place.endswith("_csv"))], place


# ---------------------------------------------------------------- the card
def card():
    return DatasetCard.load(ROOT / "README.md", ignore_metadata_errors=False).data


def resource(name):
    return json.loads((resources.files(datasets) / f"utils/resources/{name}.json").read_text(encoding="utf-8"))


def test_the_cards_values_are_those_that_the_hub_knows():
    data = card()
    assert set(data.annotations_creators) <= set(resource("creators")["annotations"])
    assert set(data.language) <= set(resource("languages"))
    assert set(data.size_categories) <= set(resource("size_categories"))
    assert set(data.task_categories) <= set(known_task_ids)
    assert data.source_datasets == ["original"] and data.license == "mit" and data.pretty_name and data.tags


def test_datasets_reads_the_cards_configs():
    configs = MetadataConfigs.from_dataset_card_data(card())
    assert list(configs) == list(CONFIGS) and configs.get_default_config_name() == "default"
    for config, files in CONFIGS.items():
        assert configs[config]["data_files"] == [{"split": split_of(file), "path": f"data/{file}.parquet"} for file in files]


def test_datasets_reads_the_same_types_and_sizes_from_the_card_and_from_dataset_infos():
    infos = DatasetInfosDict.from_dataset_card_data(card())
    legacy = json.loads((ROOT / "dataset_infos.json").read_bytes())
    assert list(infos) == list(legacy) == list(CONFIGS)
    for config, info in infos.items():
        old = datasets.DatasetInfo.from_dict(legacy[config])
        assert info.features == old.features == features(CONFIGS[config][0])
        sizes = {split_of(file): pq.read_metadata(ROOT / f"data/{file}.parquet").num_rows for file in CONFIGS[config]}
        assert {name: split.num_examples for name, split in info.splits.items()} == {name: split.num_examples for name, split in old.splits.items()} == sizes
        assert old.description and old.citation and old.homepage and old.license == "MIT"
        assert str(old.version) == ("0.3.0" if config.startswith("expanded") else "0.2.0")


def test_the_canary_stands_in_the_card_and_in_the_manifest():
    assert CANARY in (ROOT / "README.md").read_text(encoding="utf-8")
    assert json.loads((ROOT / "manifest.json").read_bytes())["canary"] == CANARY


MATTER = "---\nlicense: mit\n---\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", MATTER),
        ("# Title\n", f"{MATTER}\n# Title\n"),
        ("---\nlicense: other\n---\n# Title\n\n---\n\nA rule above.\n", f"{MATTER}# Title\n\n---\n\nA rule above.\n"),
        (f"{MATTER}# Title\n", f"{MATTER}# Title\n"),
        ("---\r\na: b\r\n---\r\n# Title\r\n", f"{MATTER}# Title\n"),
        ("---\n---\ntext\n", f"{MATTER}text\n"),
    ],
)
def test_the_text_of_a_card_stays_as_it_is(before, after):
    assert with_front_matter(before, MATTER) == after
    yaml.safe_load(after.split("---\n")[1])


def test_hand_written_yaml_is_replaced(command, checkout):
    path = checkout / "README.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("license: mit", "license: other", 1), encoding="utf-8")
    assert stale(command, checkout) == {"README.md"}
    assert command(checkout / "tools/build.py").status == 0
    assert path.read_text(encoding="utf-8") == text
