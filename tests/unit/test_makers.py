"""Keys of makers: whose results count, for which stages, and until when."""

import subprocess
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from tests.support.helpers import CORE, WORKS, Command, make_project
from tests.support.hostile_store import (
    SCOPES,
    Json,
    add_result,
    file_result,
    put,
    read_json,
    task_at,
)
from tests.support.makers import Makers

from torchyard.errors import HostError, StoreError, UsageError
from torchyard.host.own_files import refuse_secret
from torchyard.model.canonical import canonical_json
from torchyard.model.recipe import Stage
from torchyard.model.result import Result
from torchyard.store.gc import remove_garbage
from torchyard.store.keys import blob_key, result_key
from torchyard.store.makers import KEY, TRUST, load_signer, load_trust, make_key, verify_signature
from torchyard.store.store import Store
from torchyard.store.transfer import copy
from torchyard.store.trees import Writer, fetch_all
from torchyard.store.verify import verify

BUILDS = (Stage.SOURCE, Stage.CORE, Stage.PACKAGE)
KIND = "application/x-test"


@pytest.fixture
def makers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Makers:
    """A builder and a checker with their keys; this machine is the builder."""
    makers = Makers(tmp_path / "makers", monkeypatch)
    makers.add("builder", BUILDS)
    makers.add("checker", [Stage.CHECK, Stage.SMOKE])
    makers.be("builder")
    return makers


@pytest.fixture
def store(makers: Makers, tmp_path: Path) -> Store:
    return Store.at(str(tmp_path / "store"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/file").write_text("made", encoding="utf-8")
    return tmp_path / "out"


def made(store: Store, out: Path, stage: Stage = Stage.PACKAGE) -> Result:
    """Add a result as this machine would make it."""
    scope = SCOPES.get(stage, SCOPES[Stage.PACKAGE])
    plain = add_result(Store(store.objects), task_at(scope, stage), out)
    store.objects.delete([result_key(plain.fingerprint)])
    result = store.signed(plain)
    assert store.publish(result)
    return result


def refusal(store: Store, result: Result) -> str:
    """Return why a result does not count."""
    assert not store.has(result.fingerprint)
    assert store.known([result.fingerprint]) == set()
    with pytest.raises(StoreError) as caught:
        store.find(result.fingerprint)
    return str(caught.value)


# ---------------------------------------------------------------------------------------- files


def test_a_key_is_a_file_that_openssl_reads_and_no_source_or_result_holds(tmp_path: Path) -> None:
    key = make_key(tmp_path / "key")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    argv = ["openssl", "pkey", "-in", str(tmp_path / "key"), "-pubout"]
    public = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert public.splitlines()[1] == key
    with pytest.raises(HostError, match="secret of torchyard"):
        refuse_secret((tmp_path / "key").read_bytes(), "key")
    with pytest.raises(UsageError, match="File exists"):
        make_key(tmp_path / "key")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_key_that_others_can_read_or_replace_is_refused(makers: Makers, mode: int) -> None:
    (makers.trust_file.parent / "builder").chmod(mode)
    with pytest.raises(UsageError, match="can be read by other users"):
        load_signer()


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_trust_file_that_others_can_replace_is_refused(makers: Makers, mode: int) -> None:
    makers.trust_file.chmod(0o644)
    assert load_trust()
    makers.trust_file.chmod(mode)
    with pytest.raises(UsageError, match="can be replaced by other users"):
        load_trust()


RSA = ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"]


@pytest.mark.parametrize("content", [None, "", "-----BEGIN PRIVATE KEY-----\nhunter2", "RSA"])
def test_a_key_that_can_not_be_used_is_a_sentence(
    content: str | None, makers: Makers, torchyard: Command, tmp_path: Path
) -> None:
    (tmp_path / "store").mkdir()
    path = makers.trust_file.parent / "builder"
    path.unlink()
    if content == "RSA":
        content = subprocess.run(RSA, capture_output=True, text=True, check=True).stdout
    if content is not None:
        path.touch(0o600)
        path.write_text(content, encoding="utf-8")
    said = torchyard("store", "ls", "--store", tmp_path / "store")
    assert said.code == 2
    assert KEY in said.err or "is no private key" in said.err
    assert "hunter2" not in said.err


@pytest.mark.parametrize(
    "text",
    [
        "rubbish",
        "[[maker]]\nname = 'x'\nkey = 'AAAA'\nstages = ['core']",
        "[[maker]]\nname = 'x'\nkey = 'é'\nstages = ['core']",
        "[[maker]]\nname = 'x'\nkey = '{key}'\nstages = ['everything']",
        "[[maker]]\nname = 'x'\nkey = '{key}'\nstages = ['core']\nuntil = 'never'",
        "[[maker]]\nname = 'x'\nstages = ['core']",
        "[[trusted]]\n",
    ],
)
def test_a_trust_file_that_can_not_be_used_is_a_sentence(text: str, makers: Makers) -> None:
    key = makers.signer("builder").key
    makers.trust_file.write_text(text.replace("{key}", key), encoding="utf-8")
    with pytest.raises(UsageError, match="is no trust file"):
        load_trust()


def test_a_signature_counts_for_one_key_one_kind_and_the_same_bytes(makers: Makers) -> None:
    signer, other = makers.signer("builder"), makers.signer("checker")
    signature = signer.sign(KIND, b"data")
    assert verify_signature(signer.key, KIND, b"data", signature)
    assert not verify_signature(other.key, KIND, b"data", signature)
    assert not verify_signature(signer.key, f"{KIND}d", b"ata", signature)
    assert not verify_signature(signer.key, KIND, b"date", signature)
    for wrong in ("", "AAAA", "é", signature[:-4], f"{signature}AAAA"):
        assert not verify_signature(signer.key, KIND, b"data", wrong)


# -------------------------------------------------------------------------------------- results


def test_a_result_of_a_trusted_maker_counts(store: Store, out: Path) -> None:
    result = made(store, out)
    assert store.find(result.fingerprint) == result
    assert store.known([result.fingerprint]) == {result.fingerprint}
    assert verify(store).is_clean


@pytest.mark.usefixtures("makers")
def test_a_changed_result_does_not_count(store: Store, out: Path, torchyard: Command) -> None:
    result = made(store, out)
    (out / "file").write_text("forged", encoding="utf-8")
    (forged,) = Writer(store).add_tree(out).files
    changes: dict[str, Json] = {
        "tree.files.0.digest": forged.digest,
        "facts": {"sandbox": "bwrap"},
        "machine": "another",
        "signature": "AAAA",
    }
    for path, value in changes.items():
        document = read_json(result)
        put(document, path, value)
        put(document, "tree.files.0.size", forged.size)
        file_result(store, msgspec.json.encode(document), result.fingerprint)
        assert "it was changed after builder signed it" in refusal(store, result)
    said = torchyard("store", "verify", "--store", store.url)
    assert said.code == StoreError.exit_code
    assert "it was changed after builder signed it" in said.out
    assert torchyard("store", "verify", "--remove", "--store", store.url).code == 0
    assert verify(store).results == 0


def test_a_result_of_somebody_else_does_not_count(
    makers: Makers, store: Store, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = made(store, out)
    plain = msgspec.structs.replace(result, key="", signature="")
    store.objects.write(result_key(result.fingerprint), canonical_json(plain))
    assert "it is not signed" in refusal(store, result)
    make_key(makers.trust_file.parent / "stranger")
    stranger = Store(store.objects, makers.signer("stranger"))
    store.objects.write(result_key(result.fingerprint), canonical_json(stranger.signed(plain)))
    assert "signed with an unknown key" in refusal(store, result)
    swapped = msgspec.structs.replace(stranger.signed(plain), key=result.key)
    store.objects.write(result_key(result.fingerprint), canonical_json(swapped))
    assert "it was changed after builder signed it" in refusal(store, result)
    monkeypatch.delenv(TRUST)
    assert Store.at(store.url).find(result.fingerprint) == swapped, (
        "without a trust file, signatures are not read"
    )


def test_a_maker_counts_only_for_the_stages_that_it_is_trusted_for(store: Store, out: Path) -> None:
    result = made(store, out, Stage.CHECK)
    assert "its maker builder is not trusted for `check`" in refusal(store, result)


def test_a_maker_can_have_several_keys_until_one_is_revoked(
    makers: Makers, store: Store, out: Path
) -> None:
    result = made(store, out)
    old = makers.signer("builder").key
    (makers.trust_file.parent / "builder").rename(makers.trust_file.parent / "old")
    makers.add("builder", BUILDS)
    renewed = Store.at(store.url)
    assert renewed.find(result.fingerprint) == result
    makers.revoke(old)
    revoked = Store.at(store.url)
    assert "was revoked: the disk was stolen" in refusal(revoked, result)
    revoked.objects.delete([result_key(result.fingerprint)])
    assert made(revoked, out).key != old


def test_unfinished_work_is_no_result(store: Store, out: Path) -> None:
    result = made(store, out)
    store.keep_unfinished(store.signed(result, finished=False))
    work = store.find_unfinished(result.fingerprint)
    assert work is not None
    store.objects.write(result_key(result.fingerprint), canonical_json(work))
    assert "it was changed after builder signed it" in refusal(store, result)
    store.keep_unfinished(result)
    assert store.find_unfinished(result.fingerprint) is None, "nor is a result unfinished work"


def test_a_copy_keeps_its_maker(makers: Makers, store: Store, out: Path, tmp_path: Path) -> None:
    result = made(store, out)
    makers.be("checker")
    target = Store.at(str(tmp_path / "target"))
    copy(store, target, [result])
    assert target.find(result.fingerprint) == result


def test_sidecars_are_carried_and_kept_with_their_result(
    store: Store, out: Path, tmp_path: Path
) -> None:
    (out / "beside").write_text("a statement", encoding="utf-8")
    sidecar = Writer(store).add_file(out / "beside", "file.intoto.jsonl")
    (out / "beside").unlink()
    plain = add_result(Store(store.objects), task_at(SCOPES[Stage.PACKAGE]), out)
    store.objects.delete([result_key(plain.fingerprint)])
    result = store.signed(msgspec.structs.replace(plain, sidecars=(sidecar,)))
    store.publish(result)
    target = Store.at(str(tmp_path / "target"))
    copy(store, target, [result])
    remove_garbage(target, [result.fingerprint], timedelta(0))
    assert verify(target).is_clean
    fetch_all(target, [result], tmp_path / "got")
    assert (tmp_path / "got/file.intoto.jsonl").read_text(encoding="utf-8") == "a statement"
    store.objects.delete([blob_key(sidecar.digest)])
    assert "`file.intoto.jsonl` is missing" in verify(store).broken[result.fingerprint]


def test_a_machine_makes_nothing_that_would_not_count(
    makers: Makers, torchyard: Command, tmp_path: Path
) -> None:
    file = make_project(tmp_path, WORKS)
    makers.be("checker")
    done = torchyard("run", "source:demo-1.0", "-f", file)
    assert done.code == 2
    assert "its maker checker is not trusted for `source`" in done.err
    makers.be("builder")
    for job in ("source:demo-1.0", CORE):
        assert torchyard("run", job, "-f", file).code == 0
    results = list(Store.at(f"{tmp_path}/.torchyard/store").results())
    assert {makers.trust().name_of(result.key) for result in results} == {"builder"}


# ------------------------------------------------------------------------------------- commands


def test_commands_make_trust_and_revoke_keys(
    tmp_path: Path, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = torchyard("store", "key", tmp_path / "key").out.strip()
    monkeypatch.setenv(KEY, str(tmp_path / "key"))
    refused = torchyard("store", "trust", "builder")
    assert (refused.code, f"{TRUST} is not set" in refused.err) == (2, True)
    monkeypatch.setenv(TRUST, str(tmp_path / "trust.toml"))
    refused = torchyard("store", "trust", "builder", "--stage", "packages")
    assert (refused.code, "did you mean `package`" in refused.err) == (2, True), refused.err
    done = torchyard("store", "trust", "builder", "--stage", "core", "--stage", "package")
    assert "builder is trusted for core, package" in done.err
    other = make_key(tmp_path / "other")
    assert torchyard("store", "trust", 'the "other" one', other).code == 0
    trust = load_trust()
    assert trust
    assert [(maker.name, maker.key) for maker in trust.maker] == [
        ("builder", key),
        ('the "other" one', other),
    ]
    assert trust.maker[0].stages == (Stage.CORE, Stage.PACKAGE)
    assert trust.maker[1].stages == tuple(Stage)
    refused = torchyard("store", "trust", "nobody", "AAAA")
    assert (refused.code, "is no public key" in refused.err) == (2, True)
    assert load_trust() == trust
    refused = torchyard("store", "revoke", key[:-1], "--reason", "a test")
    assert (refused.code, "no maker with the key" in refused.err) == (5, True)
    assert torchyard("store", "revoke", key, "--reason", "a test\n[[maker]]").code == 0
    after = load_trust()
    assert after
    assert after.maker == trust.maker
    assert "was revoked: a test" in str(after.distrust(key, Stage.CORE))
    refused = torchyard("store", "trust", "builder", key)
    assert (refused.code, "nothing that it signs would count" in refused.err) == (2, True)
    assert load_trust() == after
    assert after.distrust(other, Stage.CORE) is None
