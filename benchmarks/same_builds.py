"""Whether two versions of hlsgen make the same builds: a digest of every file of every build.

    python benchmarks/same_builds.py --write before.json [FOLDER ...]     # with the one version
    python benchmarks/same_builds.py --against before.json [FOLDER ...]   # with the other one

Builds every .onnx file of the folders (default: examples, tests/data, and ../shared/models where it is there) with
several sets of options and takes a SHA-256 of each file that the build would write, or the diagnostics of a model
that is refused. Exits with 1 and names the files that differ. For changes that must not change what is built.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import hlsgen

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = [ROOT / "examples", ROOT / "tests" / "data", ROOT.parent / "shared" / "models"]
#: Sets of options, by name.
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "float32": {"input": "float32"},
    "dsp, slow": {"prefer": "dsp", "target_cycles": 20000, "weights": "bram"},
    "fast, loadable": {"target_cycles": 64, "loadable": True, "reset_active_low": True, "top": "other"},
}
#: Models with more bytes are built once.
LARGE = 400_000


def digest(path: str, variant: str) -> dict[str, str]:
    """Of every file of a build; or of the refusal."""
    try:
        build = hlsgen.check(path, hlsgen.Options(**VARIANTS[variant]))
    except hlsgen.HlsgenError as error:
        lines = [f"{d.code} {d.node} {d.message} {d.hint}" for d in error.diagnostics]
        return {"refused": hashlib.sha256("\n".join(lines).encode()).hexdigest()}
    return {name: hashlib.sha256(data).hexdigest() for name, data in build.files.items()}


def jobs(folders: list[Path]) -> list[tuple[str, str, str]]:
    """(key, path, variant) of every build."""
    found = []
    for folder in folders:
        for path in sorted(folder.rglob("*.onnx")):
            variants = list(VARIANTS)[: 1 if path.stat().st_size > LARGE else None]
            found += [(f"{path.relative_to(folder.parent)}, {v}", str(path), v) for v in variants]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--write", type=Path, metavar="JSON")
    group.add_argument("--against", type=Path, metavar="JSON")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    work = jobs([f.resolve() for f in arguments.folders] or [f for f in FOLDERS if f.is_dir()])
    with ProcessPoolExecutor(arguments.jobs) as pool:
        results = pool.map(digest, [path for _, path, _ in work], [variant for _, _, variant in work])
        made = {}
        for number, ((key, _, _), result) in enumerate(zip(work, results, strict=True)):
            made[key] = result
            if sys.stderr.isatty():
                print(f"\r{number + 1} of {len(work)}", end="", file=sys.stderr)
    if arguments.write:
        arguments.write.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
        print(f"{len(made)} builds, {sum('refused' in files for files in made.values())} of them refused")
        return 0
    before = json.loads(arguments.against.read_text())
    different = 0
    for key in sorted(made.keys() | before.keys()):
        old, new = before.get(key, {}), made.get(key, {})
        names = sorted(n for n in old.keys() | new.keys() if old.get(n) != new.get(n))
        if names:
            different += 1
            print(f"{key}: {', '.join(names[:6])}{' ...' if len(names) > 6 else ''}")
    print(f"{len(made)} builds, {different} differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
