"""Builds the wheel and the sdist with the standard library alone (PEP 517 and PEP 660).

`pip install ./python` therefore needs neither setuptools nor a registry. The metadata is read
from pyproject.toml, by the few forms in which it is written there: Python 3.10 has no TOML parser.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent
PACKAGE = "unstuck_client"
# The oldest time that a zip file can hold: the same source gives the same wheel.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)

Settings = Mapping[str, object] | None


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Writes the wheel. Returns its file name."""
    source = ROOT / "src"
    modules = sorted(p for p in (source / PACKAGE).rglob("*") if p.is_file() and _is_kept(p))
    return _write_wheel(
        wheel_directory, {p.relative_to(source).as_posix(): p.read_bytes() for p in modules}
    )


def build_editable(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Writes a wheel that points to the source. Returns its file name."""
    path = f"{ROOT / 'src'}\n".encode()
    return _write_wheel(wheel_directory, {f"__editable__.{PACKAGE}.pth": path})


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Writes the sdist. Returns its file name."""
    stem = f"{PACKAGE}-{_project('version')}"
    names = ["pyproject.toml", "build_backend.py", "README.md"]
    files = [ROOT / name for name in names]
    for folder in ("src", "tests"):
        files += sorted(p for p in (ROOT / folder).rglob("*") if p.is_file() and _is_kept(p))
    with tarfile.open(Path(sdist_directory, f"{stem}.tar.gz"), "w:gz") as archive:
        for path in files:
            archive.add(path, f"{stem}/{path.relative_to(ROOT).as_posix()}")
        info = tarfile.TarInfo(f"{stem}/PKG-INFO")
        info.size = len(_metadata())
        archive.addfile(info, io.BytesIO(_metadata()))
    return f"{stem}.tar.gz"


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    """Writes the metadata alone. Returns the name of its folder."""
    folder = Path(metadata_directory, _dist_info())
    folder.mkdir()
    (folder / "METADATA").write_bytes(_metadata())
    (folder / "WHEEL").write_bytes(_WHEEL)
    return folder.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel

_WHEEL = b"Wheel-Version: 1.0\nGenerator: unstuck\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _write_wheel(directory: str, files: dict[str, bytes]) -> str:
    name = f"{PACKAGE}-{_project('version')}-py3-none-any.whl"
    info = _dist_info()
    contents = {**files, f"{info}/METADATA": _metadata(), f"{info}/WHEEL": _WHEEL}
    record = "".join(f"{path},{_digest(data)},{len(data)}\n" for path, data in contents.items())
    contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with zipfile.ZipFile(Path(directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in contents.items():
            entry = zipfile.ZipInfo(path, ZIP_TIME)
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return name


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return "sha256=" + digest.rstrip(b"=").decode()


def _metadata() -> bytes:
    head = [
        "Metadata-Version: 2.1",
        f"Name: {_project('name')}",
        f"Version: {_project('version')}",
        f"Summary: {_project('description')}",
        "License: MIT",
        f"Keywords: {','.join(_list('keywords'))}",
        *(f"Classifier: {one}" for one in _list("classifiers")),
        f"Requires-Python: {_project('requires-python')}",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join([*head, "", (ROOT / "README.md").read_text("utf-8")]).encode()


def _dist_info() -> str:
    return f"{PACKAGE}-{_project('version')}.dist-info"


def _project(field: str) -> str:
    """Returns a text of pyproject.toml."""
    found = re.search(rf'^{re.escape(field)} = "([^"]*)"$', _pyproject(), re.M)
    if found is None:
        raise ValueError(f"pyproject.toml has no line with {field}")
    return found[1]


def _list(field: str) -> list[str]:
    """Returns a list of texts of pyproject.toml."""
    found = re.search(rf"^{re.escape(field)} = \[([^\]]*)\]$", _pyproject(), re.M)
    return re.findall(r'"([^"]*)"', found[1]) if found else []


def _pyproject() -> str:
    return (ROOT / "pyproject.toml").read_text("utf-8")


def _is_kept(path: Path) -> bool:
    return "__pycache__" not in path.parts and path.suffix != ".pyc"
