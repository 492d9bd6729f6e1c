"""`torchyard verify`: who made a package, by a statement that its maker has signed."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.signer import Key  # type: ignore[attr-defined]  # its public name
from tests.support.channels import LATER, NOW
from tests.support.helpers import SMALL, Command, plan_of
from tests.support.made_wheel import make_wheel, spec_for
from tests.support.makers import Makers
from tests.support.schemas import validate
from tests.support.web import FileServer

from torchyard.errors import CheckError, PublishError
from torchyard.model.recipe import Stage
from torchyard.model.result import File, Result, Tree
from torchyard.package.statement import check_statement, package_origin, sign_statement
from torchyard.publish.channel.channel import Channel
from torchyard.publish.ops.promote import gather_packages
from torchyard.publish.publish import publish
from torchyard.publish.select import parse_selection
from torchyard.publish.staged import digests_of, read_staged
from torchyard.store.makers import TRUST, Signer, Trust

SPEC = spec_for(plan_of(SMALL), "cu130-mkl/cp312/wheel")
COMMIT = "12" * 20

Document = dict[str, "Json"]
Json = str | list["Json"] | Document


@pytest.fixture
def makers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Makers:
    makers = Makers(tmp_path / "makers", monkeypatch)
    makers.add("builder", [Stage.PACKAGE])
    makers.add("checker", [Stage.CHECK])
    return makers


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path / "dist")


def signed(wheel: Path, signer: Signer, *, confined: bool = True, also: str = "") -> bytes:
    """Return a statement about a wheel, as the job that made it would sign it."""
    source, *others = SPEC.tasks
    source = msgspec.structs.replace(
        source, settings={"git": "https://example.org/pytorch", "commit": COMMIT}
    )
    core = msgspec.structs.replace(others[0], settings={"identity": {"compiler": "gcc 14.2"}})
    more = [msgspec.structs.replace(source, settings={"git": also})] if also else []
    spec = msgspec.structs.replace(SPEC, tasks=(source, *more, core, *others[1:]))
    digests = digests_of(wheel)
    file = File(path=wheel.name, digest=digests.sha256, size=digests.size, mtime=0)
    log = File(path="log.gz", digest="ab" * 32, size=1, mtime=0)
    task = spec.task
    result = Result(
        fingerprint=task.fingerprint,
        spec=spec,
        tree=Tree(files=(file,)),
        log=log,
        facts={"sandbox": "bwrap"},
        started="2026-11-19T12:00:00Z",
        torchyard="0.1.0",
        run="a run",
    )
    made = msgspec.structs.replace(result, spec=spec.of(core), fingerprint=core.fingerprint)
    return sign_statement(result, [made], signer, confined=confined)


def beside(wheel: Path) -> Path:
    return wheel.with_name(f"{wheel.name}.intoto.jsonl")


@pytest.fixture
def stated(wheel: Path, makers: Makers) -> Path:
    """A wheel with a statement of the builder."""
    beside(wheel).write_bytes(signed(wheel, makers.signer("builder")))
    return wheel


def test_a_statement_says_who_made_a_package_from_what(
    stated: Path, makers: Makers, torchyard: Command
) -> None:
    done = torchyard("verify", stated.parent, "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    validate(document, "verify")
    assert document["packages"] == [
        {
            "file": str(stated),
            "fault": "",
            "maker": "builder",
            "key": makers.signer("builder").key,
            "job": SPEC.task.id,
            "source": "git+https://example.org/pytorch",
            "commit": COMMIT,
            "confined": True,
            "torchyard": "0.1.0",
            "started": "2026-11-19T12:00:00Z",
            "toolchain": {"compiler": "gcc 14.2"},
        }
    ]
    said = torchyard("verify", stated)
    assert "made by builder" in said.out
    assert f"git+https://example.org/pytorch {COMMIT}" in said.out


def test_other_tools_verify_the_statement(stated: Path, makers: Makers) -> None:
    """It is DSSE, an in-toto statement, and SLSA's provenance, as securesystemslib reads them."""
    envelope = Envelope.from_dict(json.loads(beside(stated).read_bytes()))
    public = b64decode(makers.signer("builder").key)[-32:].hex()
    (keyid,) = envelope.signatures
    kind = {"keytype": "ed25519", "scheme": "ed25519", "keyval": {"public": public}}
    key = Key.from_dict(keyid, kind)
    assert envelope.verify([key], 1) == {keyid: key}
    assert envelope.payload_type == "application/vnd.in-toto+json"
    statement = json.loads(envelope.payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    definition = statement["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["spec"]["tasks"][-1]["id"] == SPEC.task.id
    source, core, compiler = definition["resolvedDependencies"]
    assert source["digest"] == {"gitCommit": COMMIT}
    assert (core["name"], set(core["digest"])) == (SPEC.tasks[1].id, {"fingerprint", "tree"})
    assert compiler["annotations"] == {"identity": "gcc 14.2"}
    assert statement["predicate"]["runDetails"]["metadata"]["invocationId"] == "a run"


# ------------------------------------------------------------------------------------- attacks

Attack = Callable[[Path, Makers], None]


def _change_package(wheel: Path, _makers: Makers) -> None:
    with wheel.open("r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(bytes([first[0] ^ 1]))


def _take_that_of_another(wheel: Path, makers: Makers) -> None:
    other = make_wheel(wheel.parent.parent / "other", "other")
    beside(wheel).write_bytes(signed(other, makers.signer("builder")))


def _rename(wheel: Path, _makers: Makers) -> None:
    """Offer an older version, with its statement, as a newer one."""
    newer = wheel.with_name(wheel.name.replace("1.0", "2.0"))
    wheel.rename(newer)
    beside(wheel).rename(beside(newer))


def _edit(change: Callable[[Document], None]) -> Attack:
    def attack(wheel: Path, _makers: Makers) -> None:
        document: Document = json.loads(beside(wheel).read_bytes())
        change(document)
        beside(wheel).write_text(json.dumps(document), encoding="utf-8")

    return attack


def _signature(document: Document) -> Document:
    signatures = document["signatures"]
    assert isinstance(signatures, list)
    assert isinstance(signatures[0], dict)
    return signatures[0]


def _change_payload(document: Document) -> None:
    payload = b64decode(str(document["payload"])).replace(COMMIT.encode(), b"34" * 20)
    document["payload"] = b64encode(payload).decode()


def _change_type(document: Document) -> None:
    document["payloadType"] = "application/vnd.torchyard.result+json"


def _drop_signatures(document: Document) -> None:
    document["signatures"] = []


def _swap_keys(wheel: Path, makers: Makers) -> None:
    """Sign with a key that is not trusted for packages, and name one that is."""
    beside(wheel).write_bytes(signed(wheel, makers.signer("checker")))
    key = makers.signer("builder").key
    _edit(lambda document: _signature(document).update(keyid=key))(wheel, makers)


def _sign_as_another(wheel: Path, makers: Makers) -> None:
    beside(wheel).write_bytes(signed(wheel, makers.signer("checker")))


def _sign_as_stranger(wheel: Path, makers: Makers) -> None:
    known = makers.trust_file.read_bytes()
    makers.add("stranger")
    makers.trust_file.write_bytes(known)
    beside(wheel).write_bytes(signed(wheel, makers.signer("stranger")))


def _revoke(_wheel: Path, makers: Makers) -> None:
    makers.revoke(makers.signer("builder").key)


def _remove(wheel: Path, _makers: Makers) -> None:
    beside(wheel).unlink()


def _fill(wheel: Path, _makers: Makers) -> None:
    beside(wheel).write_bytes(b"[" * 100_000)


CHANGED = "it was changed after builder signed it"
OTHER = "is about another file, or other bytes"
ATTACKS: dict[str, tuple[Attack, str]] = {
    "a byte of the package": (_change_package, OTHER),
    "the statement of another file": (_take_that_of_another, OTHER),
    "another name": (_rename, OTHER),
    "another commit": (_edit(_change_payload), CHANGED),
    "another kind": (_edit(_change_type), CHANGED),
    "no signature": (_edit(_drop_signatures), "it is not signed"),
    "swapped keys": (_swap_keys, CHANGED),
    "a maker of another stage": (_sign_as_another, "checker is not trusted for `package`"),
    "an unknown key": (_sign_as_stranger, "signed with an unknown key"),
    "a revoked key": (_revoke, "was revoked: the disk was stolen"),
    "no statement": (_remove, "it has no statement of its origin"),
    "rubbish": (_fill, "its statement can't be read"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_was_tampered_with_is_named(
    name: str, stated: Path, makers: Makers, torchyard: Command
) -> None:
    attack, why = ATTACKS[name]
    assert package_origin(stated, makers.trust()).maker == "builder"
    attack(stated, makers)
    done = torchyard("verify", stated.parent)
    assert done.code == CheckError.exit_code
    assert why in done.out
    assert "is not proven" in done.err


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ('source = ["git+https://example.org/*"]\nsandbox = "required"', ""),
        ('source = ["git+https://example.com/*", "sdist"]', "is none that the policy allows"),
        ('sandbox = "required"', "was not made in a sandbox"),
        ('sandbox = "sometimes"', "is no trust file"),
        ('sources = "git+https://example.org/*"', "is no trust file"),
    ],
)
def test_a_policy_can_require_a_source_and_a_sandbox(
    rule: str, why: str, stated: Path, makers: Makers, torchyard: Command
) -> None:
    if "sandbox" in why:
        signer = makers.signer("builder")
        beside(stated).write_bytes(signed(stated, signer, confined=False))
        assert torchyard("verify", stated).code == 0
    with makers.trust_file.open("a", encoding="utf-8") as file:
        file.write(f"[require]\n{rule}\n")
    done = torchyard("verify", stated)
    assert done.code == (0 if not why else 2 if "file" in why else CheckError.exit_code)
    assert why in f"{done.out}{done.err}"


def test_a_policy_is_about_all_sources(stated: Path, makers: Makers, torchyard: Command) -> None:
    with makers.trust_file.open("a", encoding="utf-8") as file:
        file.write('[require]\nsource = ["git+https://example.org/*"]\n')
    beside(stated).write_bytes(signed(stated, makers.signer("builder"), also="https://a.example"))
    assert (
        "`git+https://a.example` is none that the policy allows" in torchyard("verify", stated).out
    )


def test_a_signature_of_a_result_is_none_of_a_statement(stated: Path, makers: Makers) -> None:
    """Who can have results signed can't have statements signed by that, nor the reverse."""
    signer = makers.signer("builder")
    document = json.loads(beside(stated).read_bytes())
    payload = b64decode(document["payload"])
    for kind in ("application/vnd.torchyard.result+json", ""):
        document["signatures"][0]["sig"] = signer.sign(kind, payload)
        with pytest.raises(CheckError, match="changed after"):
            check_statement(json.dumps(document).encode(), stated.name, "", makers.trust())


# ------------------------------------------------------------------------------------- channels


def published(folder: Path, wheel: Path, trust: Trust | None) -> Channel:
    channel = Channel.at(str(folder), make=True)
    packages = read_staged([wheel.parent], "compute", NOW, trust=trust)
    publish(channel, channel.head(), packages, LATER)
    return channel


def test_a_channel_shows_who_made_its_packages(
    stated: Path, makers: Makers, tmp_path: Path, torchyard: Command
) -> None:
    published(tmp_path / "channel", stated, makers.trust())
    with FileServer(tmp_path / "channel") as server:
        for where in (tmp_path / "channel", server.url):
            done = torchyard("verify", where, "--json")
            assert done.code == 0, done.err
            (package,) = json.loads(done.out)["packages"]
            assert (package["file"], package["maker"]) == (stated.name, "builder")
    makers.revoke(makers.signer("builder").key)
    assert torchyard("verify", tmp_path / "channel").code == CheckError.exit_code


def test_what_is_not_proven_is_not_published(stated: Path, makers: Makers, tmp_path: Path) -> None:
    published(tmp_path / "channel", stated, None)
    assert not list((tmp_path / "channel").rglob("*.jsonl")), "without trust, nobody's counts"
    _change_package_behind(stated)
    with pytest.raises(PublishError, match="is about another file, or other bytes"):
        read_staged([stated.parent], "compute", NOW, trust=makers.trust())


def _change_package_behind(wheel: Path) -> None:
    """Make another sound wheel of the same name."""
    make_wheel(wheel.parent, text="y = 2\n")


def test_a_promotion_carries_what_is_proven(stated: Path, makers: Makers, tmp_path: Path) -> None:
    source = published(tmp_path / "source", stated, makers.trust())
    selection = parse_selection(["demo"], (), ())
    ((_, package, note),) = gather_packages(source, selection, NOW, makers.trust())
    assert (package.statement, note) == (beside(stated).read_bytes(), "")
    ((_, package, _),) = gather_packages(source, selection, NOW)
    assert not package.statement
    (stored,) = (tmp_path / "source").rglob("*.jsonl")
    _edit(_change_payload)(stored.with_name(stated.name), makers)
    ((_, package, note),) = gather_packages(source, selection, NOW, makers.trust())
    assert (package.statement, CHANGED in note) == (b"", True)


@pytest.mark.usefixtures("makers")
def test_nothing_is_not_proven(tmp_path: Path, torchyard: Command) -> None:
    (tmp_path / "empty").mkdir()
    done = torchyard("verify", tmp_path / "empty")
    assert (done.code, "there is no package in" in done.err) == (5, True)


def test_without_a_policy_nobody_is_trusted(
    stated: Path, makers: Makers, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TRUST)
    done = torchyard("verify", stated)
    assert (done.code, "whom do you trust" in done.err) == (2, True)
    assert torchyard("verify", stated, "--policy", makers.trust_file).code == 0
