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


def export_files(files: dict[str, bytes], target: Path, *, name: str) -> None:
    """Into a new folder, or, if its name ends so, a new archive `….tar`."""
    if target.exists() or target.is_symlink():
        raise InvalidTask(f"{str(target)!r} is there already: remove it, or name another")
    if not target.absolute().parent.is_dir():
        raise InvalidTask(f"the folder {str(target.absolute().parent)!r} must be there, to make {target.name!r} in it")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.absolute().parent) as beside:
            kit = Path(beside) / "kit"
            write_files(kit, files)
            if target.suffix == ".tar":
                content = io.BytesIO()
                with tarfile.open(fileobj=content, mode="w") as archive:
                    archive.add(kit, arcname=name, filter=_without_owner)
                write_private(target, content.getvalue())
            else:
                kit.rename(target)
    except OSError as error:
        raise FleetError(f"{str(target)!r} cannot be written: {error.strerror or error}") from None


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Files are to belong to whoever unpacks them, also if that is root."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


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
