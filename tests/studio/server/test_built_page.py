"""The built page as it is kept: whole, at home below any path, and free of what is elsewhere."""

import json
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "studio" / "web"
BUILT = PAGE / "dist"


def test_the_page_names_only_files_that_are_there_beside_it() -> None:
    named = re.findall(r'(?:src|href)="([^"]+)"', (BUILT / "index.html").read_text(encoding="utf-8"))
    assert any(name.endswith(".js") for name in named)
    assert all(name.startswith("./") and (BUILT / name).is_file() for name in named), named


def test_no_style_is_fetched_from_elsewhere() -> None:
    for file in BUILT.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()[^;)]*//", file.read_text(encoding="utf-8")), file.name


def test_the_licences_of_what_is_built_in_come_with_it() -> None:
    told = (BUILT / "licenses.md").read_text(encoding="utf-8")
    wanted = json.loads((PAGE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert [name for name in wanted if name not in told] == []


def test_every_package_is_pinned_and_none_to_a_server() -> None:
    lock = json.loads((PAGE / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert packages
    assert [name for name, package in packages.items() if "integrity" not in package or "resolved" in package] == []
