"""Rules of the house: which room may know which, what is public, what the documents promise."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import unblur

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "unblur"

LAYERS = [
    ["unblur.errors", "unblur.words"],
    ["unblur.labels", "unblur.spark", "unblur.hashing"],
    ["unblur.csvfile", "unblur.hierarchy"],
    ["unblur.arx", "unblur.arx.hierarchy_csv", "unblur.arx.loss", "unblur.lattice"],
    ["unblur.arx.serialized", "unblur.arx.search"],
    ["unblur.arx.archive", "unblur.arx.builders"],
    ["unblur.config"],
    ["unblur.release", "unblur.arx.settings"],
    ["unblur.arx.project_attributes", "unblur.arx.project_output"],
    ["unblur.arx.project_run"],
    ["unblur.arx.project"],
    ["unblur.watching", "unblur.leftovers"],
    ["unblur.dictionaries"],
    ["unblur.cutting"],
    ["unblur.histogram", "unblur.engines", "unblur.grid", "unblur.mechanisms", "unblur.walk"],
    ["unblur.arx.inference", "unblur.distinct", "unblur.tallying"],
    ["unblur.remaining"],
    ["unblur.frontier"],
    ["unblur.recoding", "unblur.workspace"],
    ["unblur.arx.recoding"],
    ["unblur.tables"],
    ["unblur.files", "unblur.lookups"],
    ["unblur.parts"],
    ["unblur.overlaps", "unblur.counting", "unblur.counting.deadline", "unblur.counting.numbers"],
    ["unblur.counting.problem", "unblur.counting.light"],
    ["unblur.counting.weights"],
    ["unblur.counting.spread"],
    ["unblur.counting.exact"],
    ["unblur.counting.alone", "unblur.counting.certain"],
    ["unblur.counting.placements"],
    ["unblur.attacking"],
    ["unblur.ablation", "unblur.program"],
    ["unblur.counting.cpsat"],
    ["unblur.refining"],
    ["unblur.joint", "unblur.joint.plan", "unblur.joint.interval", "unblur.joint.atoms", "unblur.joint.merging"],
    ["unblur.joint.folding"],
    ["unblur.joint.front"],
    ["unblur.joint.rehearsing", "unblur.joint.flowing"],
    [
        "unblur.joint.rules",
        "unblur.joint.sides",
        "unblur.joint.frontier",
        "unblur.joint.filling",
        "unblur.joint.guessing",
    ],
    ["unblur.joint.thinning", "unblur.joint.flow", "unblur.joint.ordering", "unblur.joint.tightening"],
    ["unblur.joint.orders"],
    ["unblur.joint.program", "unblur.joint.exact"],
    ["unblur.joint.proposing", "unblur.joint.tables", "unblur.joint.blending"],
    ["unblur.joint.estimating"],
    ["unblur.joint.parts"],
    ["unblur.joint.solving"],
    ["unblur.joint.standing"],
    ["unblur.explanations"],
    ["unblur.risk", "unblur.explaining"],
    ["unblur.findings", "unblur.detecting"],
    ["unblur.together", "unblur.drawing"],
    ["unblur.sources"],
    ["unblur.cells", "unblur.output", "unblur.reading"],
    ["unblur.pairing"],
    ["unblur.matching"],
    ["unblur.truth", "unblur.leaks", "unblur.arx.replaying", "unblur.projects"],
    ["unblur.scheduling"],
    ["unblur.working"],
    ["unblur.postgrestable", "unblur.sparkfolder"],
    ["unblur.targets"],
    ["unblur.building.profiling", "unblur.building.laminar"],
    ["unblur.building.drafts"],
    ["unblur.building", "unblur.building.intervals", "unblur.building.dates", "unblur.building.masks"],
    ["unblur.building.inferring"],
    ["unblur.anonymizing"],
    ["unblur.replay"],
    ["unblur.gates"],
    ["unblur.whereabouts"],
    ["unblur.pictures", "unblur.pictures.style"],
    ["unblur.pictures.segments", "unblur.pictures.trees", "unblur.pictures.lattices"],
    ["unblur.pages", "unblur.pages.rendering"],
    ["unblur.report", "unblur.report.phrases", "unblur.report.spreading"],
    ["unblur.report.figures", "unblur.report.subject", "unblur.report.classes"],
    [
        "unblur.report.telling",
        "unblur.report.verdicts",
        "unblur.report.cards",
        "unblur.report.charts",
        "unblur.report.maps",
    ],
    ["unblur.report.advice"],
    ["unblur.report.checks"],
    ["unblur.report.contents"],
    ["unblur.report.markdown"],
    ["unblur.report.rendering"],
    ["unblur.audits"],
    ["unblur.auditing", "unblur.sampling"],
    ["unblur.attacks"],
    ["unblur.datasets", "unblur.datasets.catalogue"],
    ["unblur.datasets.synthetic", "unblur.datasets.nafld"],
    ["unblur.datasets.loading", "unblur.datasets.writing"],
    ["unblur.paper", "unblur.paper.published", "unblur.paper.claims", "unblur.paper.sheets"],
    ["unblur.paper.origins"],
    ["unblur.paper.protocol", "unblur.paper.worked_example"],
    ["unblur.paper.timing"],
    ["unblur.paper.jointly", "unblur.paper.sections"],
    ["unblur.paper.results"],
    ["unblur.paper.running", "unblur.paper.tables", "unblur.paper.charts", "unblur.paper.verdicts"],
    ["unblur.paper.joint_tables"],
    ["unblur.paper.joint_page"],
    ["unblur.paper.evaluation"],
    ["unblur", "unblur.demo", "unblur.schemas"],
    ["unblur.cli.progress", "unblur.cli.screen", "unblur.cli.times"],
    [
        "unblur.cli.anonymize",
        "unblur.cli.data",
        "unblur.cli.explain",
        "unblur.cli.paper",
        "unblur.cli.sample",
        "unblur.cli.tree",
    ],
    ["unblur.cli.audit"],
    ["unblur.cli.demo", "unblur.cli.hierarchy"],
    ["unblur.web", "unblur.web.words", "unblur.web.uploads", "unblur.web.guard", "unblur.web.forms"],
    ["unblur.web.results", "unblur.web.looks"],
    ["unblur.web.rendering", "unblur.web.reporting", "unblur.web.proposals", "unblur.web.attributes"],
    ["unblur.web.tasks"],
    ["unblur.web.worker"],
    ["unblur.web.jobs"],
    ["unblur.web.cases"],
    ["unblur.web.describing"],
    ["unblur.web.site"],
    ["unblur.web.pages"],
    ["unblur.web.api"],
    ["unblur.web.app"],
    ["unblur.web.server"],
    ["unblur.cli.serve"],
    ["unblur.cli"],
    ["unblur.__main__"],
]
"""From the ground up. A module may import from the layers below its own; `unblur` itself loads lazily."""


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path) -> set[str]:
    """The modules of ours that a module imports, wherever in it, but for types alone."""
    tree = ast.parse(path.read_text())
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("unblur"):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules() else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("unblur")}
    return found


def test_every_module_has_a_layer() -> None:
    assert sorted(modules()) == sorted(name for layer in LAYERS for name in layer)


def test_modules_import_only_from_layers_below() -> None:
    level = {name: height for height, layer in enumerate(LAYERS) for name in layer}
    wrong = [
        f"{name} imports {other}"
        for name, path in modules().items()
        for other in imports(path)
        if level[other] >= level[name]
    ]
    assert wrong == []


def test_the_public_names_are_these() -> None:
    assert unblur.__all__ == [
        "AnonymizedRelease",
        "Audit",
        "Config",
        "EquivalenceClass",
        "Hierarchy",
        "QuasiIdentifier",
        "Release",
        "UnblurError",
        "UnblurWarning",
        "anonymize",
        "attack",
        "audit",
        "read_release",
    ]
    assert all(getattr(unblur, name) is not None for name in unblur.__all__)


def test_help_does_not_load_the_heavy_libraries() -> None:
    code = "import sys, unblur.cli; print([m for m in ('numpy', 'ibis', 'duckdb', 'pyarrow') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = project["dependencies"] + [d for extra in project["optional-dependencies"].values() for d in extra]
    reasons = (ROOT / "docs" / "dependencies.md").read_text()
    names = {re.split(r"[\[<>=! ]", requirement)[0] for requirement in declared}
    assert sorted(name for name in names if f"`{name}`" not in reasons) == []


def test_the_lock_file_pins_every_dependency_and_names_no_host() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    lines = [line for line in lock.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[^\s;]+", line) for line in lines)
    assert "://" not in lock
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = project["dependencies"] + [d for extra in project["optional-dependencies"].values() for d in extra]
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    assert {re.split(r"[\[<>=! ]", each)[0].lower() for each in declared} - pinned == set()


def test_links_in_the_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_version_is_in_the_changelog_and_the_citation() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text()
