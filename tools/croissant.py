"""The Croissant description: every data file with its checksum, and the records in it with their types."""

import hashlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from rdod_metric.rules import INPUT_COLUMNS, LABELLED_COLUMNS, VERSION
from reasoning_drift_onset_detection import CITATION, CONFIG_DESCRIPTIONS, DESCRIPTION, HOMEPAGE, split_of
from tools.typed import Tables

_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The JSON-LD context that the Croissant 1.0 specification gives."""

_FORMATS = {"csv": "text/csv", "parquet": "application/x-parquet"}
"""Media types of the data files."""

Citation = Mapping[str, Any]
"""The content of CITATION.cff."""


def croissant(tables: Tables, files: Mapping[str, bytes], citation: Citation) -> dict[str, Any]:
    """Return the content of `croissant.json`.

    Every split has two sets of records: one named like the split (`train`, `expanded_train`), with the
    typed rows of its Parquet file, and one ending in `_csv`, with the cells of its CSV file.

    Args:
        tables: the typed rows of every file of rows.
        files: the content of the CSV and Parquet files by name; text has LF line ends.
        citation: the content of CITATION.cff.
    """
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "reasoning-drift-onset-detection-v0.2",
        "description": DESCRIPTION,
        "url": HOMEPAGE,
        "license": "https://spdx.org/licenses/MIT",
        "version": VERSION,
        "datePublished": str(citation["date-released"]),
        "creator": [{"@type": "sc:Person", "name": f"{author['given-names']} {author['family-names']}"} for author in citation["authors"]],
        "publisher": {"@type": "sc:Organization", "name": "Clarus Invariant"},
        "citeAs": CITATION,
        "keywords": citation["keywords"],
        "inLanguage": "en",
        "isLiveDataset": False,
        "distribution": [_file(name, content) for name, content in files.items()],
        "recordSet": [_typed_records(file, table) for file, table in tables.items()] + [_csv_records(file, table) for file, table in tables.items()],
    }


def _file(name: str, content: bytes) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{len(content)} B",
        "encodingFormat": _FORMATS[name.rpartition(".")[2]],
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _records(name: str, description: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "description": description, "key": {"@id": f"{name}/scenario_id"}, "field": fields}


def _name(file: str) -> str:
    """Return what the records of a file are called: record sets have no folders."""
    return file.replace("/", "_")


def _description(file: str) -> str:
    return CONFIG_DESCRIPTIONS.get(_name(file), f"The labelled split {split_of(file)} of the expanded release.")


def _typed_records(file: str, table: pa.Table) -> dict[str, Any]:
    name = _name(file)
    fields = []
    for column in table.schema:
        field = _field(name, column.name, f"data/{file}.parquet", column.type)
        if pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type):
            field["repeated"] = True
            field["subField"] = [_sub_field(field, inner) for inner in column.type.value_type]
        elif pa.types.is_list(column.type):
            field |= {"dataType": _data_type(column.type.value_type), "repeated": True}
        fields.append(field)
    return _records(name, _description(file), fields)


def _csv_records(file: str, table: pa.Table) -> dict[str, Any]:
    name = f"{_name(file)}_csv"
    columns = INPUT_COLUMNS if split_of(file) == "test_blind" else LABELLED_COLUMNS
    types = (table.schema.field(column.removesuffix("_json")).type for column in columns)
    fields = [_field(name, column, f"data/{file}.csv", pa.string() if pa.types.is_list(kind) else kind) for column, kind in zip(columns, types, strict=True)]
    return _records(name, f"{_description(file)} As the CSV file has it, constraints and steps as JSON text.", fields)


def _data_type(kind: pa.DataType) -> str:
    return "sc:Integer" if pa.types.is_integer(kind) else "sc:Float" if pa.types.is_floating(kind) else "sc:Text"


def _source(file: str, column: str) -> dict[str, Any]:
    return {"fileObject": {"@id": file}, "extract": {"column": column}}


def _field(records: str, column: str, file: str, kind: pa.DataType) -> dict[str, Any]:
    return {"@type": "cr:Field", "@id": f"{records}/{column}", "name": column, "dataType": _data_type(kind), "source": _source(file, column)}


def _sub_field(field: dict[str, Any], inner: pa.Field) -> dict[str, Any]:
    """Return the part of a column of records that holds one of their keys."""
    source = {**field["source"], "transform": {"jsonPath": inner.name}}
    return {"@type": "cr:Field", "@id": f"{field['@id']}/{inner.name}", "name": inner.name, "dataType": _data_type(inner.type), "source": source}
