"""A small process that cleans up when this process dies, even by `kill -9`.

The reaper reads from a pipe that only this process can write to. When this process ends, the pipe
is closed. The reaper then ends the registered process groups, and removes the registered
directories and placeholders. It is a short shell script, which starts with the first registration
and ends when none is left.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading

__all__ = ["TEMPORARY", "clear", "cleared", "forget", "watch"]

TEMPORARY = "agents-tools-"
"""The prefix of the names of directories that are removed with their contents."""

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

At the end of its input it ends the groups that are still watched. If there is a `/proc`, it also
ends the processes in the sessions with those ids, because a shell creates a group for each of its
jobs. Then it removes the registered paths: with `all`, a directory and its contents if its name
starts with `TEMPORARY`; with `empty`, a path without content, or a file that contains only a dot.
"""

_SHELL = "/bin/sh"


class _ProcessReaper:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.groups: set[int] = set()
        self.paths: dict[str, str] = {}
        """The paths to remove, each with its mode: `all` or `empty`."""
        self.process: subprocess.Popen[bytes] | None = None

    def send(self, command: str, target: object) -> None:
        """Send a command to the process if it runs."""
        process = self.process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                process.stdin.write(os.fsencode(f"{command} {target}\n"))
                process.stdin.flush()

    def start(self) -> None:
        """Start the process unless it runs, and send it all groups and paths."""
        if self.process is not None and self.process.poll() is None:
            return
        self.process = None
        with contextlib.suppress(OSError):
            self.process = subprocess.Popen(  # noqa: S603 - a fixed program and script
                [_SHELL, "-c", _SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,  # no lock that another thread can hold during a fork
                start_new_session=True,  # Ctrl-C in the terminal must not end it
                cwd="/",
            )
            for group in self.groups:
                self.send("watch", group)
            for path, mode in self.paths.items():
                self.send(mode, f"{path}/")

    def stop_if_idle(self) -> None:
        """End the process if no group and no path is left."""
        if not self.groups and not self.paths and (process := self.process) is not None:
            self.process = None
            _end(process)


_reaper = _ProcessReaper()


def watch(group: int) -> None:
    """End a process group, and the session of the same id, when this process ends.

    Args:
        group: The id of the group. On Windows, which has no groups, nothing happens.
    """
    if os.name != "posix":
        return
    with _reaper.lock:
        _reaper.start()
        _reaper.groups.add(group)
        _reaper.send("watch", group)


def forget(group: int) -> None:
    """Stop watching a process group that has ended.

    Args:
        group: The id of the group.
    """
    with _reaper.lock:
        if group not in _reaper.groups:
            return
        _reaper.groups.discard(group)
        _reaper.send("forget", group)
        _reaper.stop_if_idle()


def clear(path: str | os.PathLike[str], *, only_empty: bool = False) -> None:
    """Remove a path when this process ends, after the process groups.

    Args:
        path: A directory whose name starts with `TEMPORARY`, which is removed with its contents,
            or any file or directory with `only_empty`. A path with a line break is not removed,
            and on Windows no path is.
        only_empty: Whether the path is removed only if it is empty.
    """
    text = os.fspath(path)
    if os.name != "posix" or "\n" in text:
        return
    mode = "empty" if only_empty else "all"
    with _reaper.lock:
        _reaper.start()
        _reaper.paths[text] = mode
        _reaper.send(mode, f"{text}/")


def cleared(path: str | os.PathLike[str]) -> None:
    """Cancel the removal of a path, because it was removed or must be kept.

    Args:
        path: The path that was passed to `clear`.
    """
    text = os.fspath(path)
    with _reaper.lock:
        if _reaper.paths.pop(text, None) is None:
            return
        _reaper.send("cleared", f"{text}/")
        _reaper.stop_if_idle()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=1)  # nothing is registered any more, so it ends at once


def _reset_after_fork() -> None:
    """Create a new reaper in a forked process; the existing one belongs to its parent."""
    global _reaper
    parent, _reaper = _reaper, _ProcessReaper()
    if parent.process is not None and parent.process.stdin is not None:
        with contextlib.suppress(OSError):
            parent.process.stdin.close()  # otherwise the pipe stays open when the parent ends
        parent.process.returncode = 0  # not a child of this process, which cannot wait for it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
