"""A small process that clears up after this one when it dies without doing so itself.

It holds the reading end of a pipe whose writing end only this process has. Whatever ends this
process, `kill -9` included, closes the pipe; the guardian then ends the process groups, and removes
the directories and placeholders, that it was told of. It is a shell of a few lines, is started with
the first of them, and ends with the last.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading

__all__ = ["TEMPORARY", "clear", "cleared", "forget", "watch"]

TEMPORARY = "agents-tools-"
"""How the names of directories begin that are removed with all that is in them."""

_SCRIPT = """
members() {
  for stat in /proc/[0-9]*/stat; do
    read -r line < "$stat" || continue
    set -- ${line##*) }
    for one in $groups; do
      if [ "$4" = "$one" ]; then stat=${stat%/stat}; echo "${stat#/proc/}"; fi
    done
  done
}
end() {
  for one in $groups; do kill -s "$1" -- "-$one"; done
  for one in $(members); do kill -s "$1" -- "$one"; done
}
groups=
while read -r what which; do
  case $what in
    watch) groups="$groups $which" ;;
    forget)
      kept=
      for one in $groups; do [ "$one" = "$which" ] || kept="$kept $one"; done
      groups=$kept ;;
    all | empty) set -- "$@" "$what $which" ;;
    cleared)
      for one; do
        shift
        [ "${one#* }" = "$which" ] || set -- "$@" "$one"
      done ;;
  esac
done
if [ -n "$groups" ]; then
  end TERM
  sleep 2
  end KILL
fi
for one; do
  path=${one#* }
  path=${path%/}
  if [ -L "$path" ]; then continue; fi
  case $one in
    all*)
      case ${path##*/} in
        agents-tools-*) rm -rf -- "$path" || { chmod -R u+rwX -- "$path"; rm -rf -- "$path"; } ;;
      esac ;;
    *)
      if [ -d "$path" ]; then rmdir -- "$path"
      elif [ -f "$path" ]; then
        if [ ! -s "$path" ] || [ "$(head -c 4 -- "$path")" = . ]; then rm -f -- "$path"; fi
      fi ;;
  esac
done
"""
"""Reads `watch N` and `forget N`, `all PATH/`, `empty PATH/` and `cleared PATH/`.

At the end of its input it ends the groups that are still watched, and what is in the sessions of
those ids as far as there is a `/proc`: a shell gives each of its jobs a group of its own. Then it
removes what is left: a directory with all that is in it where its name is one of ours, otherwise
only what is empty; a file with nothing but a dot counts as such.
"""

_SHELL = "/bin/sh"


class _ProcessReaper:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.groups: set[int] = set()
        self.paths: dict[str, str] = {}
        """What is to be removed, and how much of it: `all` or `empty`."""
        self.process: subprocess.Popen[bytes] | None = None

    def tell(self, what: str, which: object) -> None:
        """Pass a line on, if there is anybody to read it."""
        process = self.process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                process.stdin.write(os.fsencode(f"{what} {which}\n"))
                process.stdin.flush()

    def start(self) -> None:
        """Start the process unless it runs, and tell it what it has to know."""
        if self.process is not None and self.process.poll() is None:
            return
        self.process = None
        with contextlib.suppress(OSError):
            self.process = subprocess.Popen(  # noqa: S603 - a fixed program and script
                [_SHELL, "-c", _SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,  # a forked process can let go of it whatever other threads were doing
                start_new_session=True,  # a Ctrl-C in the terminal is not for it
                cwd="/",
            )
            for group in self.groups:
                self.tell("watch", group)
            for path, how in self.paths.items():
                self.tell(how, f"{path}/")

    def stop_if_idle(self) -> None:
        """End the process when there is nothing left to look after."""
        if not self.groups and not self.paths and (process := self.process) is not None:
            self.process = None
            _end(process)


_guardian = _ProcessReaper()


def watch(group: int) -> None:
    """End a process group, and the session of the same id, when this process ends.

    Args:
        group: The id of the group; nothing happens where there are none (Windows).
    """
    if os.name != "posix":
        return
    with _guardian.lock:
        _guardian.start()
        _guardian.groups.add(group)
        _guardian.tell("watch", group)


def forget(group: int) -> None:
    """Let go of a process group that has ended.

    Args:
        group: The id of the group.
    """
    with _guardian.lock:
        if group not in _guardian.groups:
            return
        _guardian.groups.discard(group)
        _guardian.tell("forget", group)
        _guardian.stop_if_idle()


def clear(path: str | os.PathLike[str], *, only_empty: bool = False) -> None:
    """Remove a path when this process ends, after the process groups.

    Args:
        path: A directory whose name begins with `TEMPORARY`, which goes with all that is in it; or
            any file or directory that goes if it is empty. One with the end of a line in its path
            is left where it is, and so is everything where there is no guardian (Windows).
        only_empty: Whether it is of the second kind.
    """
    text = os.fspath(path)
    if os.name != "posix" or "\n" in text:
        return
    how = "empty" if only_empty else "all"
    with _guardian.lock:
        _guardian.start()
        _guardian.paths[text] = how
        _guardian.tell(how, f"{text}/")


def cleared(path: str | os.PathLike[str]) -> None:
    """Let go of a path that has been removed, or is to stay.

    Args:
        path: What `clear` was given.
    """
    text = os.fspath(path)
    with _guardian.lock:
        if _guardian.paths.pop(text, None) is None:
            return
        _guardian.tell("cleared", f"{text}/")
        _guardian.stop_if_idle()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=1)  # it has been told that nothing is left: it ends at once


def _reset_after_fork() -> None:
    """Leave the guardian to the parent in a forked process, which has none of the servers."""
    global _guardian
    before, _guardian = _guardian, _ProcessReaper()
    if before.process is not None and before.process.stdin is not None:
        with contextlib.suppress(OSError):
            before.process.stdin.close()  # or the parent's end would go unnoticed
        before.process.returncode = 0  # not a child of this process: nobody here waits for it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
