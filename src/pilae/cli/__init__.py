"""The command line: from a table or a folder of images to a model, predictions, a report and an ONNX file."""

import os
import sys
import warnings
from pathlib import Path

from .._base.warn import StrangeRows
from .arguments import parsed, run


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 if it went well, 1 with one sentence on standard error if not, 2 for wrong usage."""
    options = parsed(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn  # type: ignore[assignment]
            warnings.simplefilter("ignore", StrangeRows)  # `predict` and `evaluate` count them
            run(options)
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (ValueError, OSError, ImportError) as error:
        print(f"pilae: {_sentence(error)}", file=sys.stderr)
        return 1
    except MemoryError as error:
        why = f" ({_one_line(error)})" if str(error) else ""
        print(f"pilae: there is not enough memory for this{why}: give it fewer rows or columns.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("pilae: stopped, nothing was written.", file=sys.stderr)
        return 130
    return 0


def _sentence(error: Exception) -> str:
    """What went wrong, on one line; the system's own errors with the name of the file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename!r}." if error.filename is not None else f"{error.strerror}."
    text = _one_line(error)
    return text if text.endswith((".", "?", "!", ")")) else f"{text}."


def _one_line(message: BaseException | str) -> str:
    return " ".join(str(message).split())


def _warn(message: Warning | str, category: type[Warning], filename: str, *_: object) -> None:
    """Warnings of this library as sentences; those of others are not for people at a command line."""
    if Path(filename).is_relative_to(Path(__file__).parents[1]) and issubclass(category, UserWarning):
        print(f"pilae: {_one_line(message)}", file=sys.stderr)
