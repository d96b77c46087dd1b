"""Writing: whole or not at all; links stay links, devices stay devices, and a hopeless path is refused at once."""

from __future__ import annotations

import os
import platform
import pty
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mipl.errors import DataError
from mipl.io.atomic import atomic_path, check_writable, is_stream

#: A program that writes "new" to the path of its first argument, in two parts.
WRITE = """
import os, sys
from mipl.io.atomic import atomic_path
with atomic_path(sys.argv[1]) as part, part.open("w") as file:
    file.write("ne")
    file.flush()
    if "kill" in sys.argv:
        os.kill(os.getpid(), 9)
    file.write("w")
"""


def save(path: Path | str) -> None:
    with atomic_path(path) as part:
        part.write_text("new")


def fail_in_mid_save(path: Path | str, error: BaseException) -> None:
    with atomic_path(path) as part:
        part.write_text("ne")
        raise error


def in_another_process(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WRITE, *map(str, words)], text=True, check=False, **options)


# -------------------------------------------------------------------- regular files


def test_a_kill_in_mid_save_leaves_the_old_file_whole_and_the_next_save_cleans_up(tmp_path: Path):
    path = tmp_path / "x.parquet"
    path.write_text("old")
    assert in_another_process(path, "kill").returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2
    assert list(tmp_path.glob("*.parquet")) == [path]
    save(path)
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_temporary_files_of_living_processes_other_targets_and_other_machines_stay(tmp_path: Path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    host = platform.node()
    kept = {
        f".x.csv.mipl-{host}-{os.getpid()}-0123abcd.tmp",
        f".xx.csv.mipl-{host}-{gone.pid}-0123abcd.tmp",
        f".x.csv.mipl-{host}elsewhere-{gone.pid}-0123abcd.tmp",
        f".x.csv.mipl-{host}-{gone.pid}-mine.tmp",
    }
    left_over = f".x.csv.mipl-{host}-{gone.pid}-0123abcd.tmp"
    for name in (*kept, left_over):
        (tmp_path / name).touch()
    save(tmp_path / "x.csv")
    assert set(os.listdir(tmp_path)) == {*kept, "x.csv"}


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path):
    path = tmp_path / ("x" * 251 + ".csv")
    assert in_another_process(path, "kill").returncode == -signal.SIGKILL
    save(path)
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_into_a_missing_folder_names_that_folder(tmp_path: Path):
    (tmp_path / "x.csv").symlink_to(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(DataError, match=r"the folder \S*nowhere does not exist"):
        save(tmp_path / "x.csv")


def test_an_error_in_the_block_leaves_no_trace(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        fail_in_mid_save(path, KeyboardInterrupt())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_permissions_of_the_umask_and_an_old_one_keeps_its_own(tmp_path: Path):
    old_mask = os.umask(0o027)
    try:
        save(tmp_path / "new.csv")
    finally:
        os.umask(old_mask)
    assert stat.S_IMODE((tmp_path / "new.csv").stat().st_mode) == 0o640
    (tmp_path / "old.csv").write_text("old")
    (tmp_path / "old.csv").chmod(0o444)
    save(tmp_path / "old.csv")
    assert (tmp_path / "old.csv").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "old.csv").stat().st_mode) == 0o444


def test_what_takes_the_place_of_a_private_file_is_private_from_the_start(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.touch()
    for mode in (0o600, 0o400, 0o640):
        path.chmod(mode)
        with atomic_path(path) as temporary:
            assert stat.S_IMODE(temporary.stat().st_mode) & 0o077 & ~mode == 0
            temporary.write_text("secret")
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_writer_that_makes_a_private_file_of_its_own_does_not_decide_on_the_permissions(tmp_path: Path):
    old_mask = os.umask(0o022)
    try:
        with atomic_path(tmp_path / "x.mipl") as part:
            part.unlink()
            part.touch(mode=0o600)
    finally:
        os.umask(old_mask)
    assert stat.S_IMODE((tmp_path / "x.mipl").stat().st_mode) == 0o644


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path: Path, exists: bool):
    (tmp_path / "data").mkdir()
    real, link = tmp_path / "data" / "real.csv", tmp_path / "link.csv"
    if exists:
        real.write_text("old")
    link.symlink_to(Path("data") / "real.csv")
    save(link)
    assert link.is_symlink()
    assert not real.is_symlink()
    assert real.read_text() == "new"


# -------------------------------------------------------------------- streams


def test_a_pipe_gets_the_bytes_and_stays_a_pipe(tmp_path: Path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    save(pipe)
    reader.join(timeout=300)
    assert read == ["new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_device_stays_a_device(tmp_path: Path):
    null = tmp_path / "null"
    try:
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # as /dev/null
        null.write_text("")
    except PermissionError:
        pytest.skip("only root may make a device, where devices are allowed at all")
    save(null)
    assert stat.S_ISCHR(null.stat().st_mode)
    assert list(tmp_path.iterdir()) == [null]


@pytest.fixture
def stdout(tmp_path: Path) -> Path:
    """A link as /dev/stdout is one, in a folder where a mistake does no harm."""
    link = tmp_path / "stdout"
    link.symlink_to("/dev/fd/1")
    return link


def test_standard_output_by_its_path_is_a_terminal_still(stdout: Path):
    ours, theirs = pty.openpty()
    device = os.ttyname(theirs)
    done = in_another_process(stdout, stdout=theirs, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    assert os.read(ours, 100) == b"new"
    assert stat.S_ISCHR(os.stat(device).st_mode)
    assert stdout.is_symlink()
    os.close(ours)
    os.close(theirs)


def test_standard_output_that_the_shell_sends_to_a_file_is_written_to_in_order(tmp_path: Path, stdout: Path):
    told = tmp_path / "told.txt"
    program = "print('before')\n" + WRITE + "\nprint('after')"
    with told.open("w") as file:
        subprocess.run([sys.executable, "-c", program, str(stdout)], stdout=file, check=True)
    assert told.read_text() == "before\nnewafter\n"
    assert set(tmp_path.iterdir()) == {told, stdout}


def test_a_dash_is_standard_output(tmp_path: Path):
    done = in_another_process("-", capture_output=True, cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("new", 0)
    assert list(tmp_path.iterdir()) == []


def test_a_stream_gets_nothing_from_a_block_that_fails(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(OSError, match="disk full"):
        fail_in_mid_save("-", OSError("disk full"))
    assert capsys.readouterr().out == ""


# -------------------------------------------------------------------- refusals


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"the folder .*nowhere does not exist"):
        check_writable(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(DataError, match="it is a folder"):
        check_writable(tmp_path / "folder.csv", [".csv"])
    with pytest.raises(DataError, match=r"suffix must be one of \.csv, \.npz"):
        check_writable(tmp_path / "x.xls", [".csv", ".npz"])
    with pytest.raises(DataError, match="does not exist"):
        check_writable(tmp_path / "file" / "x.csv")
    check_writable(tmp_path / "x.CSV", [".csv"])
    assert not (tmp_path / "x.CSV").exists()


def test_a_read_only_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = []

    def deny(path: Path, mode: int) -> bool:
        asked.append((path, mode))
        return False

    monkeypatch.setattr(os, "access", deny)  # root may write everywhere, so the system's answer is replaced
    with pytest.raises(DataError, match="no permission to write in the folder"):
        check_writable(tmp_path / "x.csv")
    assert asked == [(tmp_path, os.W_OK | os.X_OK)]


def test_what_is_a_stream(tmp_path: Path):
    (tmp_path / "x").touch()
    assert [is_stream(path) for path in ("-", "/dev/null", tmp_path, tmp_path / "x", tmp_path / "none")] == [
        *(True, True),
        *(False, False, False),
    ]
