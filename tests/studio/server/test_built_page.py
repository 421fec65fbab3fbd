"""The committed build of the page: complete, relative to any path, without external resources."""

import gzip
import json
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "studio" / "web"
BUILT = PAGE / "dist"

MAX_FIRST_LOAD = 350_000
"""Bytes, gzipped, of everything that is loaded before the first view is shown."""


def test_built_page_references_only_existing_relative_files() -> None:
    named = re.findall(r'(?:src|href)="([^"]+)"', (BUILT / "index.html").read_text(encoding="utf-8"))
    assert any(name.endswith(".js") for name in named)
    assert all(name.startswith("./") and (BUILT / name).is_file() for name in named), named


def test_first_load_of_the_page_is_small() -> None:
    index = BUILT / "index.html"
    named = re.findall(r'(?:src|href)="([^"]+)"', index.read_text(encoding="utf-8"))
    size = sum(len(gzip.compress(file.read_bytes())) for file in (index, *(BUILT / name for name in named)))
    assert size < MAX_FIRST_LOAD, f"{size:,} bytes gzipped"


def test_built_page_styles_load_no_external_resource() -> None:
    for file in BUILT.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()[^;)]*//", file.read_text(encoding="utf-8")), file.name


def test_built_page_includes_licenses_of_its_dependencies() -> None:
    licenses = (BUILT / "licenses.md").read_text(encoding="utf-8")
    wanted = json.loads((PAGE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert [name for name in wanted if name not in licenses] == []


def test_package_lock_pins_hashes_without_registry_urls() -> None:
    lock = json.loads((PAGE / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert packages
    assert [name for name, package in packages.items() if "integrity" not in package or "resolved" in package] == []
