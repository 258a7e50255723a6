"""The manifests for Kubernetes: read strictly by its schemas, and what one says of another is true.

No cluster runs here: nothing was applied. `kubectl kustomize` puts them together where kubectl is installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import kubernetes_validate  # type: ignore[import-untyped]  # it ships no types
import pytest
import yaml

from outvote.access.kits import read_edge_kit, read_server_kit
from outvote.cli.main import make_parser
from outvote.fleet.folder import Fleet

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
VERSIONS = ("1.31", "1.37")
"""The first in which all of this is stable or on by default, and the last whose schemas are installed."""
KITS = {name: f"outvote-{name}" for name in ("server", "engine-1", "engine-2", "engine-3")} | {
    "edges/paris": "outvote-edge-paris"
}
"""Kits by their folders, and the Secrets that docs/howto/deploy.md makes of them."""

Manifest: TypeAlias = dict[str, Any]


def read(path: Path) -> list[Manifest]:
    return [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each is not None]


FILES = sorted(path for path in FOLDER.rglob("*.yaml") if path.name != "kustomization.yaml")
MANIFESTS = [(path, each) for path in FILES for each in read(path)]


def called(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def of(*kinds: str) -> list[Manifest]:
    return [each for _, each in MANIFESTS if each["kind"] in kinds]


def templates() -> list[tuple[str, Manifest]]:
    """Pods, with what makes them."""
    return [(called(each), each["spec"]["template"]) for each in of("Deployment", "StatefulSet")]


def containers(pod: Manifest) -> list[Manifest]:
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]


# ---- read by Kubernetes


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", [pytest.param(each, id=called(each)) for _, each in MANIFESTS])
def test_manifests_are_valid_without_one_unknown_field(manifest: Manifest, version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("folder", [FOLDER, FOLDER / "edge"], ids=lambda folder: folder.name)
def test_kustomizations_name_files_and_images_that_there_are(folder: Path) -> None:
    [kustomization] = read(folder / "kustomization.yaml")
    manifests = [each for file in kustomization["resources"] for each in read(folder / file)]
    images = {image["name"] for image in kustomization["images"]}
    used = {container["image"] for each in manifests for container in of_manifest(each)}
    assert images == {image for image in used if ":" not in image}
    assert all(re.fullmatch(r"nats:\d+\.\d+\.\d+-alpine", image) for image in used - images)
    assert {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"} - set(kustomization["resources"]) <= {
        "engine-outside.yaml"
    }
    if shutil.which("kubectl"):
        built = subprocess.run(
            ["kubectl", "kustomize", folder], capture_output=True, text=True, timeout=60, check=False
        )
        assert built.returncode == 0, built.stderr
        together = [each for each in yaml.safe_load_all(built.stdout) if each]
        assert sorted(map(called, together)) == sorted(map(called, manifests))
        assert not images & {container["image"] for each in together for container in of_manifest(each)}


def of_manifest(manifest: Manifest) -> Iterator[Manifest]:
    if manifest["kind"] in ("Deployment", "StatefulSet"):
        yield from containers(manifest["spec"]["template"])


# ---- what one says of another


def selectors() -> list[tuple[str, dict[str, str]]]:
    found = []
    for each in of("Deployment", "StatefulSet", "PodDisruptionBudget"):
        found.append((called(each), each["spec"]["selector"]["matchLabels"]))
    for each in of("Service"):
        found.append((called(each), each["spec"]["selector"]))
    for each in of("NetworkPolicy"):
        found.append((called(each), each["spec"]["podSelector"].get("matchLabels", {})))
        rules = [*each["spec"].get("ingress", ()), *each["spec"].get("egress", ())]
        for peer in [peer for rule in rules for peer in (*rule.get("from", ()), *rule.get("to", ()))]:
            if "podSelector" in peer:
                found.append((called(each), peer["podSelector"]["matchLabels"]))
    return found


def test_every_selector_finds_pods() -> None:
    for name, wanted in selectors():
        # Kubernetes itself puts this label on pods of a StatefulSet.
        pod = wanted.get("statefulset.kubernetes.io/pod-name")
        labels = {key: value for key, value in wanted.items() if key != "statefulset.kubernetes.io/pod-name"}
        found = [each for each in of("Deployment", "StatefulSet") if labels.items() <= pod_labels(each).items()]
        assert found, name
        assert pod is None or pod in {name for each in found for name in pod_names(each)}, name


def pod_labels(manifest: Manifest) -> dict[str, str]:
    return dict(manifest["spec"]["template"]["metadata"]["labels"])


def pod_names(manifest: Manifest) -> list[str]:
    first = manifest["spec"].get("ordinals", {}).get("start", 0)
    name, replicas = manifest["metadata"]["name"], manifest["spec"]["replicas"]
    return [f"{name}-{number}" for number in range(first, first + replicas)]


def test_selectors_of_controllers_take_their_own_pods_only() -> None:
    for each in of("Deployment", "StatefulSet"):
        wanted = each["spec"]["selector"]["matchLabels"]
        taken = [other for other in of("Deployment", "StatefulSet") if wanted.items() <= pod_labels(other).items()]
        assert taken == [each]


def ports(pod: Manifest) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for each in containers(pod) for port in each.get("ports", ())}


def test_every_port_that_is_named_is_one_of_the_pods() -> None:
    by_labels = [(pod_labels(each), ports(each["spec"]["template"])) for each in of("Deployment", "StatefulSet")]

    def offered(wanted: dict[str, str]) -> set[str]:
        wanted = {key: value for key, value in wanted.items() if not key.startswith("statefulset")}
        return set().union(*(names for labels, names in by_labels if wanted.items() <= labels.items()))

    for each in of("Service"):
        assert {port["targetPort"] for port in each["spec"]["ports"]} <= offered(each["spec"]["selector"])
    for each in of("NetworkPolicy"):
        here = each["spec"]["podSelector"].get("matchLabels", {})
        for rule in each["spec"].get("ingress", ()):
            assert {port["port"] for port in rule["ports"]} <= offered(here)
        for rule in each["spec"].get("egress", ()):
            there = [peer["podSelector"]["matchLabels"] for peer in rule["to"] if "podSelector" in peer]
            for labels in there:
                assert {port["port"] for port in rule["ports"]} <= offered(labels)
    for _, pod in templates():
        for container in containers(pod):
            own = {port["name"] for port in container.get("ports", ())}
            for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                probe = container.get(kind, {})
                asked = probe.get("httpGet") or probe.get("tcpSocket")
                assert asked is None or asked["port"] in own


def test_programs_are_started_with_what_they_take_at_the_ports_that_are_told() -> None:
    images = {"outvote-server": "server", "outvote-edge": "edge"}
    seen = set()
    for _, pod in templates():
        for container in containers(pod):
            if container["image"] not in images:
                continue
            args = make_parser().parse_args(container["args"])
            assert args.command == images[container["image"]]
            seen.add(args.command)
            mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
            assert mounts[args.kit]["readOnly"] is True
            if args.command == "edge":
                assert str(Path(args.store).parent) in mounts
                assert args.host == "127.0.0.1"
                for kind in ("startupProbe", "livenessProbe"):
                    assert container[kind]["exec"]["command"][-1] == f"http://127.0.0.1:{args.port}/healthz"
            else:
                assert container["ports"] == [{"name": "https", "containerPort": args.port}]
                for kind in ("startupProbe", "readinessProbe"):
                    assert container[kind]["httpGet"] == {"path": "/healthz", "port": "https", "scheme": "HTTPS"}
    assert seen == {"server", "edge"}


def test_volumes_are_declared_and_their_secrets_are_kits() -> None:
    used: set[str] = set()
    for manifest in of("Deployment", "StatefulSet"):
        pod = manifest["spec"]["template"]
        claims = {each["metadata"]["name"] for each in manifest["spec"].get("volumeClaimTemplates", ())}
        declared = {each["name"] for each in pod["spec"]["volumes"]} | claims
        mounted = {mount["name"] for each in containers(pod) for mount in each.get("volumeMounts", ())}
        assert declared == mounted
        for volume in pod["spec"]["volumes"]:
            sources = [each["secret"]["name"] for each in volume.get("projected", {}).get("sources", ())]
            sources += [volume["secret"]["secretName"]] if "secret" in volume else []
            used |= set(sources)
            if sources:  # only the group: programs refuse secrets that others can read
                kind = volume.get("secret") or volume["projected"]
                assert kind["defaultMode"] == 0o440
                assert pod["spec"]["securityContext"]["fsGroup"] == 10001
            assert "configMap" not in volume
    assert used == set(KITS.values())


def test_the_guide_makes_each_secret_of_its_kit() -> None:
    guide = (ROOT / "docs" / "howto" / "deploy.md").read_text(encoding="utf-8")
    made = re.findall(r"^kubectl create secret generic (\S+) .*--from-file outvote-fleet/(\S+)", guide, re.MULTILINE)
    assert {kit: name for name, kit in made} == KITS


@pytest.mark.parametrize("kit", KITS)
def test_secrets_of_a_fleet_have_what_the_pods_mount(kit: str, large_fleet: Fleet, tmp_path: Path) -> None:
    # As `kubectl create secret generic --from-file` reads a folder.
    files = {path.name: path for path in (large_fleet.folder / kit).iterdir() if path.is_file()}
    assert all(re.fullmatch(r"[-._a-zA-Z0-9]+", name) for name in files)
    if kit.startswith("engine"):
        [engine] = [each for each in of("StatefulSet") if each["metadata"]["name"] == "engine"]
        [volume] = [each for each in engine["spec"]["template"]["spec"]["volumes"] if each["name"] == "kits"]
        [items] = [
            source["secret"]["items"]
            for source in volume["projected"]["sources"]
            if source["secret"]["name"] == KITS[kit]
        ]
        mounted = {item["key"] for item in items}
        assert mounted <= files.keys()
        conf = files["nats.conf"].read_text()
        assert set(re.findall(r'_file: "([^"]+)"', conf)) == mounted - {"nats.conf"}
        [container] = engine["spec"]["template"]["spec"]["containers"]
        assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/var/lib/nats", container["workingDir"]]
        assert re.findall(r'store_dir: "([^"]+)"', conf) == ["/var/lib/nats"]
        assert re.findall(r"^listen: \"0\.0\.0\.0:(\d+)\"", conf, re.MULTILINE) == ["4322"]
        assert re.findall(r"^  listen: \"0\.0\.0\.0:(\d+)\"", conf, re.MULTILINE) == ["6322"]
        assert {port["containerPort"] for port in container["ports"]} == {4322, 6322, 8222}
        return
    for name, path in files.items():  # as in the pod: readable by the group
        (tmp_path / name).write_bytes(path.read_bytes())
        (tmp_path / name).chmod(0o440)
    found = read_server_kit(tmp_path) if kit == "server" else read_edge_kit(tmp_path)
    assert found.nats == tuple(
        f"tls://{name}.engine.outvote.svc.cluster.local:4322" for name in KITS if name.startswith("engine")
    )


def test_each_engine_gets_the_kit_of_its_name() -> None:
    [engine] = [each for each in of("StatefulSet") if each["metadata"]["name"] == "engine"]
    [volume] = [each for each in engine["spec"]["template"]["spec"]["volumes"] if each["name"] == "kits"]
    given = {}
    for source in volume["projected"]["sources"]:
        folders = {item["path"].partition("/")[0] for item in source["secret"]["items"]}
        assert all(item["path"].partition("/")[2] == item["key"] for item in source["secret"]["items"])
        [given[source["secret"]["name"]]] = folders
    assert given == {f"outvote-{name}": name for name in pod_names(engine)}
    [container] = engine["spec"]["template"]["spec"]["containers"]
    assert {mount.get("subPathExpr") for mount in container["volumeMounts"]} == {None, "$(POD_NAME)"}


# ---- safe, and one edge is one process


def test_pods_have_no_more_than_they_need() -> None:
    for name, pod in templates():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(pod):
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert "memory" in container["resources"]["limits"]


def test_an_edge_is_one_pod_with_a_disk_of_its_own() -> None:
    edges = [
        each
        for each in of("Deployment", "StatefulSet")
        if any(container["image"] == "outvote-edge" for container in containers(each["spec"]["template"]))
    ]
    assert edges
    for edge in edges:
        assert (edge["kind"], edge["spec"]["replicas"]) == ("StatefulSet", 1)
        [claim] = edge["spec"]["volumeClaimTemplates"]
        assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]


def test_what_is_interrupted_leaves_enough_behind() -> None:
    replicas = {each["metadata"]["name"]: each["spec"]["replicas"] for each in of("Deployment", "StatefulSet")}
    budgets = {each["metadata"]["name"]: each["spec"] for each in of("PodDisruptionBudget")}
    assert (replicas["engine"], budgets["engine"]["maxUnavailable"]) == (3, 1)
    assert (replicas["server"], budgets["server"]["minAvailable"]) == (2, 1)


def test_in_the_namespace_nothing_is_open_that_is_not_named() -> None:
    [closed] = [each for each in of("NetworkPolicy") if each["metadata"]["name"] == "nothing"]
    assert closed["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert {each["metadata"]["namespace"] for each in of("Deployment", "PodDisruptionBudget")} == {"outvote"}
