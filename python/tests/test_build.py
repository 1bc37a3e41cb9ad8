"""The build backend: what it writes can be installed, without a registry."""

import base64
import csv
import hashlib
import importlib.util
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WITHOUT_REGISTRY = {**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
# pip itself warns.
for name in ("PYTHONPATH", "PYTHONWARNINGS"):
    WITHOUT_REGISTRY.pop(name, None)


def load_backend():
    spec = importlib.util.spec_from_file_location("build_backend", ROOT / "build_backend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def has_pip():
    command = [sys.executable, "-m", "pip", "--version"]
    return subprocess.run(command, capture_output=True).returncode == 0


class WheelTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.backend = load_backend()

    def test_the_wheel_has_the_package_its_metadata_and_a_true_record(self):
        name = self.backend.build_wheel(str(self.folder))
        self.assertEqual(name, "unstuck_client-0.1.0-py3-none-any.whl")
        with zipfile.ZipFile(self.folder / name) as wheel:
            files = {one: wheel.read(one) for one in wheel.namelist()}
        self.assertIn("unstuck_client/py.typed", files)
        self.assertIn("unstuck_client/__init__.py", files)
        self.assertFalse([one for one in files if one.endswith(".pyc")])
        metadata = files["unstuck_client-0.1.0.dist-info/METADATA"].decode()
        self.assertIn("Name: unstuck-client\nVersion: 0.1.0\n", metadata)
        self.assertIn("Requires-Python: >=3.10\n", metadata)
        self.assertIn("\n# unstuck-client\n", metadata)
        record = files["unstuck_client-0.1.0.dist-info/RECORD"].decode()
        rows = list(csv.reader(io.StringIO(record)))
        self.assertEqual(sorted(row[0] for row in rows), sorted(files))
        for path, digest, size in rows[:-1]:
            sha = hashlib.sha256(files[path]).digest()
            expected = "sha256=" + base64.urlsafe_b64encode(sha).rstrip(b"=").decode()
            self.assertEqual((digest, int(size)), (expected, len(files[path])), path)

    def test_the_same_source_gives_the_same_wheel(self):
        other = self.folder / "other"
        other.mkdir()
        name = self.backend.build_wheel(str(self.folder))
        self.backend.build_wheel(str(other))
        self.assertEqual((self.folder / name).read_bytes(), (other / name).read_bytes())

    def test_the_sdist_has_all_that_a_build_needs(self):
        name = self.backend.build_sdist(str(self.folder))
        with tarfile.open(self.folder / name) as archive:
            names = archive.getnames()
        needed = "PKG-INFO", "pyproject.toml", "build_backend.py", "src/unstuck_client/py.typed"
        for file in needed:
            self.assertIn(f"unstuck_client-0.1.0/{file}", names)

    @unittest.skipUnless(has_pip(), "this Python has no pip")
    def test_pip_installs_it_without_a_registry(self):
        target = self.folder / "installed"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
        subprocess.run([*command, str(ROOT)], check=True, capture_output=True, env=WITHOUT_REGISTRY)
        found = subprocess.run(
            [sys.executable, "-c", "import unstuck_client; print(unstuck_client.__file__)"],
            check=True,
            capture_output=True,
            encoding="utf-8",
            cwd=self.folder,
            env={**WITHOUT_REGISTRY, "PYTHONPATH": str(target)},
        ).stdout
        self.assertTrue(found.startswith(str(target)), found)

    def test_an_editable_wheel_points_to_the_source(self):
        name = self.backend.build_editable(str(self.folder))
        with zipfile.ZipFile(self.folder / name) as wheel:
            paths = [wheel.read(one) for one in wheel.namelist() if one.endswith(".pth")]
        self.assertEqual(paths, [f"{ROOT / 'src'}\n".encode()])


if __name__ == "__main__":
    unittest.main()
