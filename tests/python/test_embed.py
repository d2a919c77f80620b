"""cgc embed: every input is accounted for, as a vector or as an error; runs go on where others ended."""
import dataclasses
import gzip
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import types

import cgc
import numpy
import pyarrow.parquet
import pytest
from cgc import _commands, _embed

CGC = [sys.executable, "-c", "from cgc._program import main; main()"]


def embed(plans, *arguments, out):
    return subprocess.run([*CGC, "embed", "--model", plans / "clip", "--executor", "reference", "--out", out, *arguments],
                          capture_output=True, text=True)


def rows(out):
    table = pyarrow.parquet.read_table(out)
    return {key: error if vector is None else numpy.array(vector, numpy.float32)
            for key, vector, error in zip(*(table[name].to_pylist() for name in ("key", "vector", "error")))}


@pytest.fixture
def folder(plans, tmp_path):
    """Pictures, of which 3 are bad, one below a folder and one with a name that is no UTF-8."""
    made = tmp_path / "pictures"
    shutil.copytree(plans / "pictures", made)
    (made / "sub").mkdir()
    shutil.copy(made / "1.jpg", made / "sub" / "1.JPG")
    shutil.copy(made / "2.jpg", os.fsencode(made) + b"/\xff.jpg")
    (made / "a.jpg").write_bytes(b"")
    (made / "b.png").write_text("no picture")
    (made / "c.jpg").write_bytes((made / "4.jpg").read_bytes()[:200])
    (made / "notes.txt").write_text("no picture, and not tried")
    return made


def test_every_picture_has_a_vector_or_an_error(plans, folder, tmp_path):
    done = embed(plans, "--images", folder, out=tmp_path / "out")
    assert done.returncode == 1 and "12 inputs, 9 vectors, 3 errors" in done.stdout and "--max-errors is 0" in done.stderr
    got, want = rows(tmp_path / "out"), numpy.load(plans / "clip.npz")["images"]
    assert sorted(got) == sorted(["0.jpg", "1.jpg", "2.jpg", "3.jpg", "4.jpg", "5.png", "6.jpg", "a.jpg", "b.png", "c.jpg", "sub/1.JPG",
                                  "\\xff.jpg"])
    for key, row in {"0.jpg": 0, "6.jpg": 6, "sub/1.JPG": 1, "\\xff.jpg": 2}.items():
        assert numpy.linalg.norm(got[key] - want[row]) < 1e-5
    assert all(isinstance(got[key], str) and got[key] and "object at" not in got[key] for key in ("a.jpg", "b.png", "c.jpg"))
    metadata = pyarrow.parquet.read_schema(next((tmp_path / "out").glob("part-*"))).metadata
    assert metadata[b"cgc.identity"].startswith(b"RANDOM-WEIGHTS-") and metadata[b"cgc.model"] == b"small_clip"


def test_another_run_embeds_what_is_new(plans, folder, tmp_path):
    assert embed(plans, "--images", folder / "sub", "--no-normalize", out=tmp_path / "one").returncode == 0
    first = embed(plans, "--images", folder, "--max-errors", "3", out=tmp_path / "out")
    assert first.returncode == 0 and "12 of them now" in first.stdout
    shutil.copy(folder / "0.jpg", folder / "z.jpg")
    second = embed(plans, "--images", folder, "--max-errors", "3", out=tmp_path / "out")
    assert "13 inputs, 10 vectors, 3 errors; 1 of them now" in second.stdout
    assert numpy.allclose(rows(tmp_path / "out")["z.jpg"], rows(tmp_path / "out")["0.jpg"], atol=1e-6)
    assert not numpy.isclose(numpy.linalg.norm(rows(tmp_path / "one")["1.JPG"]), 1)


def test_a_run_that_is_killed_loses_no_part(plans, folder, tmp_path):
    for number in range(2000):
        os.link(folder / "3.jpg", folder / f"{number:05}.jpg")
    out = tmp_path / "out"
    running = subprocess.Popen([*CGC, "embed", "--model", plans / "clip", "--executor", "reference", "--out", out, "--images", folder],
                               stderr=subprocess.DEVNULL)
    while not list(out.glob("part-*.parquet")) and running.poll() is None:
        time.sleep(.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    before = len(rows(out))
    done = embed(plans, "--images", folder, "--max-errors", "3", out=out)
    assert done.returncode == 0 and f"2012 inputs, 2009 vectors, 3 errors; {2012 - before} of them now" in done.stdout
    assert len(rows(out)) == 2012 and pyarrow.parquet.read_table(out).num_rows == 2012


def test_shards(plans, folder, tmp_path):
    shard = tmp_path / "0.tar"
    with tarfile.open(shard, "w") as archive:
        for name in ("0.jpg", "b.png", "notes.txt"):
            archive.add(folder / name, name)
    done = embed(plans, "--images", shard, "--images", folder / "sub", "--max-errors", "1", out=tmp_path / "out")
    assert done.returncode == 0 and sorted(rows(tmp_path / "out")) == sorted([f"{shard}/0.jpg", f"{shard}/b.png", f"{folder}/sub/1.JPG"])
    with tarfile.open(shard, "w") as archive:
        for name in ("0.jpg", "1.jpg", "0.jpg"):
            archive.add(folder / name, name)
    done = embed(plans, "--images", shard, out=tmp_path / "twice")
    assert done.returncode == cgc.Code.USAGE and "two inputs have the key 0.jpg" in done.stderr


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT])
def test_a_damaged_shard_loses_no_input_silently(folder, tmp_path, format):
    shard, names = tmp_path / "0.tar", [f"{number}.jpg" for number in range(3)]
    with tarfile.open(shard, "w", format=format) as archive:
        for name in names:
            archive.add(folder / "0.jpg", name)
        end = archive.offset
    whole = shard.read_bytes()

    def keys(content):
        shard.write_bytes(content)
        return [key for key, _ in _embed.pictures_of([shard])]

    assert keys(whole) == keys(whole[:end + 512]) == keys(gzip.compress(whole)) == names
    flipped = bytearray(whole)
    flipped[whole.index(b"2.jpg")] ^= 1
    zipped = gzip.compress(whole)
    for content in (*(whole[:cut] for cut in range(0, end + 512, 64)), flipped, whole + whole, zipped[:-99], gzip.compress(whole[:end])):
        with pytest.raises(cgc.InvalidFileError, match="0.tar is no tar file, or is damaged"):
            keys(content)


def test_members_that_are_no_files(folder, tmp_path):
    """A link is what it links to; a member without content is an error of its own."""
    (folder / "link.jpg").hardlink_to(folder / "0.jpg")
    (folder / "other.jpg").symlink_to("0.jpg")
    (folder / "loop.jpg").symlink_to("loop.jpg")
    (folder / "gone.jpg").symlink_to("gone")
    (folder / "folder.jpg").mkdir()
    os.mkfifo(folder / "fifo.jpg")
    names = ("0.jpg", "link.jpg", "other.jpg", "loop.jpg", "gone.jpg", "folder.jpg", "fifo.jpg")
    with tarfile.open(tmp_path / "0.tar", "w") as archive:
        for name in names:
            archive.add(folder / name, name, recursive=False)
    content = (folder / "0.jpg").read_bytes()
    assert dict(_embed.pictures_of([tmp_path / "0.tar"])) == {
        **dict.fromkeys(names[:3], content), "loop.jpg": b"", "gone.jpg": b"", "fifo.jpg": b""}


def test_files_that_are_no_pictures_do_not_stop_a_run(plans, folder, tmp_path, monkeypatch):
    os.mkfifo(folder / "sub" / "fifo.jpg")
    (folder / "sub" / "gone.jpg").symlink_to("gone")
    (folder / "sub" / "linked").symlink_to(folder)  # Is not followed.
    done = embed(plans, "--images", folder / "sub", out=tmp_path / "out")
    got = rows(tmp_path / "out")
    assert done.returncode == 1 and sorted(got) == ["1.JPG", "fifo.jpg", "gone.jpg"]
    assert got["fifo.jpg"] == "is no regular file" and "No such file" in got["gone.jpg"]
    list_folder = os.scandir

    def refuse(path):
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", str(path))
        return list_folder(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(cgc.InvalidFileError, match="sub cannot be listed .Permission denied"):
        list(_embed.pictures_of([folder]))


def test_keys_are_as_different_as_names():
    names = [b"b\xff.jpg", rb"b\xff.jpg", rb"b\x5cxff.jpg", b"b\\\xff.jpg", rb"b\X.jpg"]
    keys = [_embed.printable(os.fsdecode(name)) for name in names]
    assert len({*keys}) == len(names) and keys[0] == r"b\xff.jpg" and keys[-1] == r"b\X.jpg"


def test_a_picture_that_has_changed(plans, folder, tmp_path):
    def run(*sources):
        return embed(plans, "--images", *sources, "--max-errors", "3", out=tmp_path / "out")

    assert run(folder).returncode == 0
    shutil.copy2(folder / "1.jpg", folder / "c.jpg")  # Has failed, as it was not there as a whole.
    done = run(folder)
    assert done.returncode == 0 and "12 inputs, 10 vectors, 2 errors; 1 of them now" in done.stdout
    got = rows(tmp_path / "out")
    assert len(got) == pyarrow.parquet.read_table(tmp_path / "out").num_rows == 12 and numpy.allclose(got["c.jpg"], got["1.jpg"], atol=1e-6)
    assert "0 of them now" in run(folder).stdout
    other = tmp_path / "other"
    other.mkdir()
    (other / "0.jpg").write_bytes((folder / "1.jpg").read_bytes())
    done = run(other)
    assert done.returncode == cgc.Code.USAGE and "0.jpg has changed since" in done.stderr and rows(tmp_path / "out").keys() == got.keys()
    os.utime(folder / "0.jpg", ns=(0, 0))  # Of the same size.
    assert "0.jpg has changed since" in run(folder).stderr
    for source, name in (("0.jpg", "0.jpg"), ("1.jpg", "0.jpg")):
        with tarfile.open(tmp_path / "0.tar", "w") as archive:
            archive.add(folder / source, name)
        done = embed(plans, "--images", tmp_path / "0.tar", out=tmp_path / "shards")
        assert ("0.jpg has changed since" in done.stderr) == (source != name) == (done.returncode == cgc.Code.USAGE)


def test_rows_that_do_not_count_are_dropped_later(tmp_path):
    """As after a run that was killed before it dropped them."""
    def parts():
        return _embed.Parts(tmp_path, types.SimpleNamespace(identity="id", name="model", size=2), "image")

    vectors = numpy.arange(4, dtype=numpy.float32).reshape(2, 2)
    killed = parts()
    killed.add([("a", "", 1), ("b", "", 1)], vectors, {0: "is damaged"})
    killed.add([("a", "", 2)], vectors[1:] + 2, {})
    killed.close()
    after = parts()
    assert after.done == {"a": 2, "b": 1} and after.failed == set()
    after.drop_old()
    keys, found = after.read()
    assert keys == ["b", "a"] and found.tolist() == [[2, 3], [4, 5]]
    assert pyarrow.parquet.read_table(tmp_path)["error"].null_count == 2


def test_texts(plans, tmp_path):
    given = numpy.load(plans / "clip.npz")
    (tmp_path / "texts").write_bytes(b"\n".join([text.encode() for text in given["words"]] + [b"\xff", b""]))
    done = embed(plans, "--texts", tmp_path / "texts", out=tmp_path / "out")
    got = rows(tmp_path / "out")
    assert done.returncode == 1 and "5 inputs, 4 vectors, 1 errors" in done.stdout and got["5"] == "is no UTF-8"
    assert numpy.linalg.norm(numpy.stack([got[str(line)] for line in range(1, 5)]) - given["texts"]) < 1e-4
    lines = (tmp_path / "texts").read_bytes().split(b"\n")
    (tmp_path / "texts").write_bytes(b"\n".join([*lines[:-1], b"more"]))
    done = embed(plans, "--texts", tmp_path / "texts", out=tmp_path / "out")
    assert "6 inputs, 5 vectors, 1 errors; 1 of them now" in done.stdout
    (tmp_path / "texts").write_bytes(b"\r\n".join([*lines[:4], lines[0], b"more"]))  # The line that failed is another one.
    done = embed(plans, "--texts", tmp_path / "texts", out=tmp_path / "out")
    assert done.returncode == 0 and "6 inputs, 6 vectors, 0 errors; 1 of them now" in done.stdout
    got = rows(tmp_path / "out")
    assert len(got) == pyarrow.parquet.read_table(tmp_path / "out").num_rows == 6 and numpy.allclose(got["5"], got["1"], atol=1e-6)
    (tmp_path / "texts").write_bytes(b"\n".join([b"changed", *lines[1:]]))
    done = embed(plans, "--texts", tmp_path / "texts", out=tmp_path / "out")
    assert done.returncode == cgc.Code.USAGE and "line 1 has changed since" in done.stderr


def test_bad_input(plans, folder, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.txt").touch()
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    usage, file = cgc.Code.USAGE, cgc.Code.INVALID_FILE
    for arguments, code, message in [
            (("--images", folder, "--images", tmp_path / "empty"), usage, "empty has no pictures"),
            (("--images", folder, tmp_path / "empty.tar"), usage, "empty.tar has no pictures"),
            (("--images", folder, "--images", tmp_path / "no"), file, "no does not exist"),
            (("--images", folder / "0.jpg"), usage, "neither a folder nor a .tar file"),
            (("--texts", tmp_path / "no"), file, "no: No such file"), (("--texts", tmp_path / "empty.txt"), usage, "empty.txt is empty"),
            (("--images", folder, "--max-errors", "-1"), usage, "--max-errors: -1 is not from 0"),
            (("--images", folder, "--ray", ""), usage, "--ray is empty")]:
        done = embed(plans, *arguments, out=tmp_path / "out")
        assert done.returncode == code and message in done.stderr and "Traceback" not in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()
    assert embed(plans, "--images", folder / "sub", out=tmp_path / "out").returncode == 0
    card = cgc._folder.read(plans / "clip")
    for other, message in [((dataclasses.replace(card, identity="another"), "image", True), "cgc.identity RANDOM-WEIGHTS-.* have another"),
                           ((card, "text", True), "cgc.kind image.* have text"),
                           ((card, "image", False), "cgc.normalized true.* have false")]:
        with pytest.raises(cgc.UsageError, match=message):
            _embed.Parts(tmp_path / "out", *other)
    (part,) = (tmp_path / "out").glob("part-*")
    whole = part.read_bytes()
    shutil.copy(part, part.with_name("part-old.parquet"))  # Is no part.
    assert "1 inputs, 1 vectors, 0 errors; 0 of them now" in embed(plans, "--images", folder / "sub", out=tmp_path / "out").stdout
    for damaged in (whole[:-9], b"\0" * 200 + whole[200:]):  # The end, which has the schema; a page.
        part.write_bytes(damaged)
        done = embed(plans, "--images", folder / "sub", out=tmp_path / "out")
        assert done.returncode == cgc.Code.INVALID_FILE and "part-000000.parquet is damaged" in done.stderr, done.stderr
    schema = pyarrow.parquet.read_schema(part)
    other = pyarrow.table([["a"]], pyarrow.schema([("key", pyarrow.string())], schema.metadata))
    pyarrow.parquet.write_table(other, part)
    done = embed(plans, "--images", folder / "sub", out=tmp_path / "out")
    assert done.returncode == cgc.Code.USAGE and "part-000000.parquet has other columns" in done.stderr, done.stderr
    done = subprocess.run([*CGC, "embed", "--model", plans, "--images", folder, "--out", tmp_path / "x"], capture_output=True, text=True)
    assert done.returncode == cgc.Code.INVALID_FILE and "no model folder" in done.stderr


def test_no_space_leaves_no_half_part(tmp_path, monkeypatch):
    parts = _embed.Parts(tmp_path, types.SimpleNamespace(identity="id", name="model", size=2), "image")

    def full(table, path):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    parts.add([("a", "a.jpg", 1)], numpy.zeros((1, 2), numpy.float32), {})
    monkeypatch.setattr(parts._parquet, "write_table", full)
    with pytest.raises(cgc.Error, match=f"{tmp_path}/part-000001.parquet cannot be written .No space left.*make room"):
        parts.add([("b", "b.jpg", 1)], numpy.zeros((1, 2), numpy.float32), {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "part-000000.parquet"] and parts.done == {"a": 1}


def test_one_process_at_a_time_writes_to_a_folder(plans, folder, tmp_path):
    parts = _embed.Parts(tmp_path / "out", cgc._folder.read(plans / "clip"), "image")
    done = embed(plans, "--images", folder / "sub", out=tmp_path / "out")
    assert done.returncode == cgc.Code.USAGE and "another process writes to" in done.stderr
    parts.close()
    assert embed(plans, "--images", folder / "sub", out=tmp_path / "out").returncode == 0


def test_pictures_that_are_gone_are_not_counted(plans, folder, tmp_path):
    assert embed(plans, "--images", folder, "--max-errors", "3", out=tmp_path / "out").returncode == 0
    (folder / "a.jpg").unlink()
    (folder / "0.jpg").unlink()
    done = embed(plans, "--images", folder, "--max-errors", "2", out=tmp_path / "out")
    assert done.returncode == 0 and "10 inputs, 8 vectors, 2 errors; 0 of them now" in done.stdout


@pytest.mark.parametrize("batch", ["0", "8,8", "1,,8", "auto", "99999999999"])
def test_batches_that_cgc_export_refuses(tmp_path, capsys, batch):
    with pytest.raises(SystemExit, match="2"):
        _commands.run("export", [str(tmp_path / "model"), "--openclip", "ViT-B-32", "--batch", batch])
    assert f"--batch {batch}: give different numbers from 1 to 1073741824, such as 1,8,64" in capsys.readouterr().err
