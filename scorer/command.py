"""What all commands share: exit statuses, output that no terminal can break, files written whole or not at all."""

import contextlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rdod_metric.rules import Problem

ROOT = Path(__file__).resolve().parents[1]
"""Root of the repository that holds this command."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # would break a finding's line, or reach the terminal as a command

VALID, FINDINGS, UNABLE = 0, 1, 2
"""Exit statuses: all is well; something is wrong inside a file; the command could not do its work."""


class Unable(Exception):
    """Raised where a command can't do its work; the message is one sentence for the user."""


def run(main: Callable[[], int]) -> None:
    """Run a command and exit with its status; no traceback reaches the user."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = main()
        print(end="", flush=True)
    except Unable as error:
        print(f"error: {error}", file=sys.stderr)
        status = UNABLE
    except BrokenPipeError:  # the reader of our output went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = UNABLE
    except OSError as error:
        print(f"error: {error.filename or ''}: {error.strerror or error}".replace("error: : ", "error: "), file=sys.stderr)
        status = UNABLE
    except MemoryError:
        print("error: not enough memory for these files", file=sys.stderr)
        status = UNABLE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = 130
    sys.exit(status)


def existing_file(text: str) -> Path:
    """Return the path of a file that is there, for argparse; raise `Unable` otherwise."""
    path = Path(text)
    if path.is_dir():
        raise Unable(f"{text} is a folder, not a file")
    if not path.exists():
        raise Unable(f"no such file: {text}")
    return path


def check_output(path: Path, *inputs: Path) -> None:
    """Raise `Unable` before any work is done if an output can't be written, or would overwrite an input."""
    if path.exists() and not path.is_file():
        raise Unable(f"can't write {path}: it is {'a folder' if path.is_dir() else 'no regular file'}")
    if path.exists() and any(path.samefile(file) for file in inputs):
        raise Unable(f"can't write {path}: it is an input of this command")


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file (text as UTF-8, LF) whole or not at all, making its folder; raise `Unable` if it can't be written."""
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise Unable(f"can't write {path}: it is {'a folder' if path.is_dir() else 'no regular file'}")
    handle = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as handle:
            handle.write(content.encode() if isinstance(content, str) else content)
        with contextlib.suppress(OSError):
            os.chmod(handle.name, path.stat().st_mode if path.exists() else 0o666 & ~_umask())
        os.replace(handle.name, path)
    except BaseException as error:
        if handle is not None:
            with contextlib.suppress(OSError):
                os.unlink(handle.name)
        if isinstance(error, OSError):
            raise Unable(f"can't write {path}: {error.strerror or error}") from None
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def finding_line(problem: Problem) -> str:
    """Return a finding as one line: `file:line: column: message [code]`."""
    place = f"{problem.file}:{problem.line}" if problem.line is not None else problem.file
    line = f"{place}: {problem.column}: {problem.message} [{problem.code}]"
    return _CONTROL.sub(lambda letter: repr(letter[0])[1:-1], line)


def print_findings(problems: Sequence[Problem], output_format: str = "text") -> int:
    """Print findings to standard output, and a count to standard error; return the exit status."""
    if output_format == "json":
        findings = [{**problem._asdict(), "message": problem.message} for problem in problems]
        print(json.dumps({"valid": not problems, "findings": findings}, indent=2, ensure_ascii=True))
    else:
        for problem in problems:
            print(finding_line(problem))
    if problems:
        files = len({problem.file for problem in problems})
        print(f"{len(problems)} finding{'s' * (len(problems) != 1)} in {files} file{'s' * (files != 1)}", file=sys.stderr)
    return FINDINGS if problems else VALID
