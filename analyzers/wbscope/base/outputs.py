# SPDX-License-Identifier: Apache-2.0
"""Output files: refused early, written in private, named when whole, owned by sudo's caller.

A private folder holds a file that is locked (flock) for as long as its writer
lives, on whatever machine. What a killed writer left behind has no lock, or is
empty, so the next writer of the same output removes it.

A folder is replaced file by file, and only where all that is in it is ours: foreign_in(),
remove_ours().
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
import shlex
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path

from wbscope.base.errors import Argument, Phrase, SetupError, UsageError, WbscopeError
from wbscope.base.held_folder import HeldFolder, is_read

_LOCK = ".writer.lock"
# No other program names a folder so: what is called this way may be removed.
_MARK = ".wbscope-"
_TRIES = 100
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
# Longer names are not repeated in hidden ones, which have to fit beside them: most file systems
# take 255 bytes, some 143.
_MOST_REPEATED_BYTES = 100
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
# The private folders of this process.
_mine: set[HeldFolder] = set()


def check_output(
    output: Path | str,
    force: bool,
    inputs: Iterable[Path],
    example: str = "run.db",
    argument: str = "output",
) -> None:
    """Errors that are known before any work: call it first.

    `example` is a name for such a file and `argument` takes it, for the remedy.
    """
    shown, output = str(output) or "''", Path(output)

    def other(folder: Path) -> str:
        return Phrase(Argument(argument, free_name(folder / example)))

    if shown == "-":
        raise UsageError(
            "output-is-stdout",
            Phrase(Argument(argument, "-")),
            "is stdout, wanted a file name",
            fix=other(Path()),
        )
    check_file_name(shown, argument)
    check_parent(output, argument)
    if output.is_dir():
        raise UsageError(
            "output-is-folder", shown, "is a folder, wanted a file name", fix=other(output)
        )
    # Replacing a device node, or the link /dev/stdout, by a file would break the machine for root.
    if _is_special(output):
        raise UsageError("output-is-special", shown, "is no regular file", fix=other(Path()))
    if not output.exists():
        if os.path.lexists(output) and not force:
            raise _exists_already(output, argument)  # a link that leads nowhere
        return
    if any(is_read(output, path) for path in inputs):
        raise UsageError("output-is-input", shown, "is the input itself", fix=other(output.parent))
    if not force:
        raise _exists_already(output, argument)


def _is_special(output: Path) -> bool:
    """A device, or a name for an open file, such as /dev/stdout, whatever it leads to."""
    if not os.path.lexists(output):
        return False
    folders = [str(output.parent.resolve())]
    if output.is_symlink():
        folders.append(os.path.dirname(os.readlink(output)))
    if any(re.fullmatch("/dev|/proc/[^/]+/fd", folder) for folder in folders):
        return True
    return output.exists() and not output.is_file()


def check_file_name(shown: str, argument: str = "output") -> None:
    """A path has no slash at its end any more.

    Raises: UsageError for the name of a folder that there is not.
    """
    if shown.endswith("/") and not Path(shown).is_dir():
        raise UsageError(
            "output-is-folder",
            shown,
            "names a folder, wanted a file name",
            fix=Phrase(Argument(argument, free_name(Path(shown)))),
        )


def check_parent(output: Path, argument: str = "output") -> None:
    """Raises: SetupError where there is no folder for it, or no file can be called so."""
    try:
        os.stat(output)
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise _cannot_write(output, error, argument) from error
    folder = output.parent
    if folder.is_dir():
        return
    nearest = next((path for path in (folder, *folder.parents) if os.path.lexists(path)), None)
    if nearest is not None and not nearest.is_dir():
        # A file, or a link that leads nowhere: no mkdir helps.
        raise SetupError(
            "no-output-folder",
            str(output),
            f"{nearest} is no folder",
            fix=Phrase(Argument(argument, free_name(Path(output.name)))),
        )
    raise SetupError(
        "no-output-folder",
        str(output),
        f"folder {folder} does not exist",
        fix=f"mkdir -p {shlex.quote(str(folder))}",
    )


def check_folder(folder: Path, argument: str = "output") -> None:
    """Whether a folder can be made, or be written to where it is there: long work comes first.

    Raises: SetupError.
    """
    check_parent(folder, argument)
    tried = folder / "figure" if folder.is_dir() else folder
    try:
        with private_folder(tried):
            return
    except SetupError as error:
        raise error.with_path(str(tried), str(folder)) from error


def make_folder(folder: Path, argument: str = "output") -> None:
    """Unless it is there.

    Raises: SetupError.
    """
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise _cannot_write(folder, error, argument) from error


def free_name(path: Path) -> Path:
    """This path, or one with a number where there is something already."""
    numbered = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
    return next(name for name in chain([path], numbered) if not os.path.lexists(name))


def foreign_in(
    folder: Path, is_ours: Callable[[Path], bool], folders: Collection[str] = ()
) -> list[str]:
    """What is in a folder that we made and is not ours, by its path in it; a folder ends with /.

    `is_ours` is asked about plain files; `folders` are the names of those that we make in it.
    Links, and whatever else is no file, are somebody else's.
    Raises: OSError.
    """
    found = []
    for path in sorted(folder.iterdir()):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode) and path.name in folders:
            found += [f"{path.name}/{name}" for name in foreign_in(path, is_ours)]
        elif not (stat.S_ISREG(mode) and is_ours(path)):
            found.append(path.name + "/" * stat.S_ISDIR(mode))
    return found


def remove_ours(folder: Path, is_ours: Callable[[Path], bool]) -> None:
    """Its plain files that are ours, and the folder if nothing else is in it.  Raises: OSError."""
    ours = [path for path in folder.iterdir() if is_ours(path)]
    for path in ours:
        if stat.S_ISREG(path.lstat().st_mode):
            path.unlink()
    folder.rmdir()


@contextmanager
def private_output(output: Path, *, force: bool = True) -> Iterator[Path]:
    """A path to write to; on success it takes the output's name, else it is gone.

    Without `force`, what has got that name in the meantime stays: UsageError output-exists.
    """
    with _private(output) as folder:
        private = folder.inside / short_name(output.name)
        try:
            yield private
            folder.check_in_place()
            if force:
                os.replace(private, output)
            else:
                _publish_new(private, output)
        except WbscopeError as error:
            raise error.with_path(str(private), str(output)) from error
        except OSError as error:
            raise _cannot_write(output, error) from error


@contextmanager
def private_folder(output: Path, *, held: bool = False) -> Iterator[Path]:
    """A folder of this writer's own beside the output; in the end it is gone.

    Beside it, so that a rename stays on one file system; whatever a killed
    ingester leaves in it goes with it. Those of dead writers go first.
    With `held` its name leads there also when somebody renames it; that name is for this
    process and those of this user that it starts.
    """
    with _private(output) as folder:
        yield folder.inside if held else folder.path


@contextmanager
def _private(output: Path) -> Iterator[HeldFolder]:
    try:
        _remove_leftovers(output)
        folder, lock = _private_folder(output)
    except OSError as error:
        raise _cannot_write(output, error) from error
    _mine.add(folder)
    maker = os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == maker:  # a fork has it, too
            folder.remove(last=_LOCK)
        _mine.discard(folder)
        folder.close()
        os.close(lock)


def remove_private_folders() -> None:
    """For a command that is about to end at once, whatever it was doing."""
    for folder in list(_mine):
        folder.remove(last=_LOCK)


def short_name(name: str) -> str:
    """The name, or one that stands for it where hidden names made of it would be too long."""
    written = os.fsencode(name)
    if len(written) <= _MOST_REPEATED_BYTES:
        return name
    return hashlib.sha256(written).hexdigest()[:32]


def is_private_name(name: str, of: str) -> bool:
    """Whether a private folder of the output of this name is called so."""
    return (
        re.fullmatch(rf"\.{re.escape(short_name(of))}{re.escape(_MARK)}[a-z0-9_]{{8}}", name)
        is not None
    )


def private_name(of: str) -> str:
    """One of these names that nothing has yet."""
    return f".{short_name(of)}{_MARK}{secrets.token_hex(4)}"


def write_whole(output: Path, text: str, *, force: bool = True) -> None:
    """Write a text file that is there whole or not at all.

    A file's name that it tells may be any bytes: \\udcff is one that is no UTF-8, as in JSON.
    """
    with private_output(output, force=force) as private:
        private.write_text(text, encoding="utf-8", errors="backslashreplace")


def _private_folder(output: Path) -> tuple[HeldFolder, int]:
    """A new folder, and the open file whose lock says that it is in use."""
    prefix = f".{short_name(output.name)}{_MARK}"
    for _ in range(_TRIES):
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=output.parent))
        try:
            folder = HeldFolder(path)
        except FileNotFoundError:
            continue  # another writer took it for left behind, before there was a lock
        try:
            folder.check_new()
            lock = folder.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:
            folder.close()
            continue
        except OSError:
            with suppress(OSError):
                folder.check_own()
                path.rmdir()  # only if empty
            folder.close()
            raise
        if _take(lock, folder) is not False:
            return folder, lock
        folder.close()
        os.close(lock)  # or before it was locked
    raise OSError(None, "its private folder is removed by another program")


def _take(lock: int, folder: HeldFolder) -> bool | None:
    """Lock the file: True if done, False if others have it, None where there are no locks."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    try:
        return os.path.samestat(os.fstat(lock), folder.stat(_LOCK))
    except FileNotFoundError:
        return False


def _remove_leftovers(output: Path) -> None:
    """Remove the private folders of dead writers of this output."""
    try:
        entries = list(output.parent.iterdir())
    except OSError:
        return  # a folder may be open to writers and not to readers
    for folder in entries:
        if is_private_name(folder.name, output.name):
            remove_if_dead(folder)


def remove_if_dead(path: Path) -> None:
    """Remove a private folder if its writer has gone; one of another user stays."""
    with suppress(OSError), HeldFolder(path) as folder:
        if folder.stat(".").st_uid != os.geteuid():
            return
        try:
            lock = folder.open(_LOCK, os.O_RDWR)
        except FileNotFoundError:
            # Its writer had no lock yet, and makes another folder; or it was about to remove it.
            path.rmdir()  # only if empty
            return
        try:
            if _take(lock, folder):
                folder.remove(last=_LOCK)
        finally:
            os.close(lock)


def _publish_new(private: Path, output: Path) -> None:
    """Rename, and never replace: another command may have written the same output."""
    try:
        try:
            os.link(private, output)  # the private name goes with its folder
        except (FileExistsError, FileNotFoundError):
            raise
        except OSError:  # a folder, or a file system without hard links
            _rename_new(private, output)
    except FileExistsError:
        raise _exists_already(output) from None


def _rename_new(private: Path, output: Path) -> None:
    """renameat2(2), which Python lacks; where there is none, a look has to do.

    Raises: FileExistsError.
    """
    try:
        import ctypes  # only here: a hard link does in most places, and small Pythons lack it

        rename = ctypes.CDLL(None, use_errno=True).renameat2
        names = (os.fsencode(private), os.fsencode(output))
        if rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(number, os.strerror(number))
    except (ImportError, AttributeError):
        pass
    if os.path.lexists(output):
        raise FileExistsError
    os.replace(private, output)


def _exists_already(output: Path, argument: str = "output") -> UsageError:
    return UsageError(
        "output-exists",
        str(output),
        f"exists already ({output.lstat().st_size} bytes)",
        fix=Phrase(
            "add ",
            Argument("force", True),
            " to replace it, or choose another name with ",
            Argument(argument),
        ),
    )


def _cannot_write(output: Path, error: OSError, argument: str = "output") -> SetupError:
    wanted = "folder with room and write permission"
    if error.errno == errno.ENAMETOOLONG:
        wanted = "shorter name"
    return SetupError(
        "cannot-write",
        str(output),
        f"cannot be written: {error.strerror or error}",
        fix=Phrase(f"choose a {wanted} with ", Argument(argument)),
    )


def give_to_caller(folder: Path | HeldFolder, environment: Mapping[str, str] = os.environ) -> bool:
    """Make the one who called sudo the owner of a folder and of all in it.

    True when it was done.  Nothing happens where nobody called sudo, or root did.  No
    symbolic link is followed and a file of several names stays, so that neither a link
    nor a name that somebody puts there meanwhile gives away another file.  A folder goes
    after what is in it: its new owner could put another file there.

    Raises: OSError where the file system refuses.
    Source: sudo(8), SUDO_UID and SUDO_GID.
    """
    caller = _caller(environment)
    if caller is None:
        return False
    if isinstance(folder, Path):
        with HeldFolder(folder) as held:
            return give_to_caller(held, environment)
    top = folder.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _, _, names, inside in os.fwalk(".", topdown=False, dir_fd=top):
            for name in names:
                found = os.stat(name, dir_fd=inside, follow_symlinks=False)
                if found.st_nlink == 1 and (stat.S_ISREG(found.st_mode) or _is_link(found)):
                    os.chown(name, *caller, dir_fd=inside, follow_symlinks=False)
            os.fchown(inside, *caller)
    finally:
        os.close(top)
    return True


def belongs_to_us(folder: HeldFolder, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether its owner is this user, or the one who called sudo."""
    caller = _caller(environment)
    if caller is not None and folder.stat(".").st_uid == caller[0]:
        return True
    try:
        folder.check_own()
    except PermissionError:
        return False
    return True


def _is_link(found: os.stat_result) -> bool:
    return stat.S_ISLNK(found.st_mode)


def _caller(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """Numbers of user and group, None where root works for itself."""
    texts = [environment.get(name, "") for name in ("SUDO_UID", "SUDO_GID")]
    if os.geteuid() != 0 or not all(text.isascii() and text.isdecimal() for text in texts):
        return None
    user, group = map(int, texts)
    return (user, group) if user else None
