"""A kit to carry elsewhere: a folder, an archive or a Secret of Kubernetes; for its owner only, whole or not at all."""

from __future__ import annotations

import base64
import io
import re
import tarfile
import tempfile
from pathlib import Path

from outvote.core.errors import InvalidTask
from outvote.files import write_private
from outvote.fleet import kit_files
from outvote.fleet.errors import FleetError
from outvote.fleet.folder import Fleet, write_files


def read_kit(fleet: Fleet, name: str) -> dict[str, bytes]:
    """The files of a kit, by their names in it: of `server`, `operator`, an engine or an edge."""
    with fleet.change() as draft:
        state = draft.state
        if name in ("server", "operator", *state.engine_kits):
            folder, files = name, kit_files.central_kits(draft)
        else:
            if name not in state.edges:
                kits = ["server", "operator", *state.engine_kits, *sorted(state.edges)]
                raise InvalidTask(f"there is no kit {name!r}: there are {', '.join(kits)}")
            if state.edges[name].revoked is not None:
                raise InvalidTask(f"the edge {name!r} is revoked: `outvote fleet add {name}` makes it a new kit")
            folder, files = f"edges/{name}", kit_files.edge_kit(draft, name)
    return {
        path.removeprefix(f"{folder}/"): content
        for path, content in sorted(files.items())
        if path.startswith(f"{folder}/") and content is not None
    }


def export_files(files: dict[str, bytes], target: Path, *, name: str, now: float) -> None:
    """Into a new folder, or, if its name ends so, a new archive `….tar`."""
    if target.exists() or target.is_symlink():
        raise InvalidTask(f"{str(target)!r} is there already: remove it, or name another")
    if not target.absolute().parent.is_dir():
        raise InvalidTask(f"the folder {str(target.absolute().parent)!r} must be there, to make {target.name!r} in it")
    try:
        if target.suffix == ".tar":
            write_private(target, _archive(files, name, now))
            return
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.absolute().parent) as beside:
            write_files(Path(beside) / "kit", files)
            (Path(beside) / "kit").rename(target)
    except OSError as error:
        raise FleetError(f"{str(target)!r} cannot be written: {error.strerror or error}") from None


def _archive(files: dict[str, bytes], name: str, now: float) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        folders = {str(parent) for each in files for parent in Path(name, each).parents if str(parent) != "."}
        for folder in sorted(folders):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o700, int(now)
            archive.addfile(entry)
        for each, text in files.items():
            entry = tarfile.TarInfo(f"{name}/{each}")
            entry.size, entry.mode, entry.mtime = len(text), 0o600, int(now)
            archive.addfile(entry, io.BytesIO(text))
    return content.getvalue()


def secret_name(name: str) -> str:
    """`outvote-server`, `outvote-engine-1`, `outvote-edge-paris`."""
    own = name in ("server", "operator") or name.partition("-")[0] == "engine"
    lower = name.lower().replace("_", "-").strip("-")
    return f"outvote-{lower}" if own else f"outvote-edge-{lower}"


def secret_manifest(files: dict[str, bytes], *, name: str, namespace: str) -> str:
    """A Secret of Kubernetes, as YAML. Of a server's kit without its engine's: that runs for itself there."""
    check_label("a namespace", namespace)
    lines = [
        "apiVersion: v1",
        "kind: Secret",
        "metadata:",
        f"  name: {check_label('the name of a Secret', secret_name(name))}",
        f"  namespace: {namespace}",
        "  labels:",
        "    app.kubernetes.io/part-of: outvote",
        "type: Opaque",
        "data:",
        *(f"  {each}: {base64.b64encode(text).decode()}" for each, text in files.items() if "/" not in each),
        "",
    ]
    return "\n".join(lines)


def check_label(what: str, text: str) -> str:
    """What Kubernetes takes as a name."""
    if not re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", text):
        raise InvalidTask(f"{what} has 1 to 63 small letters, digits and '-', not at its ends; got {text!r}")
    return text
