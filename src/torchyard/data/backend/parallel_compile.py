"""Compile the files of an extension in parallel, on the slots of a jobserver, without ninja.

With `use_ninja=False`, torch's `BuildExtension` lets setuptools compile one file after another.
Here, files are compiled in the background. A module is linked once its files are compiled and the
previous module is linked. The build goes on when all are linked. The commands are the same.

This runs in the project's environment: with any Python, and any release of setuptools.
"""

import copy
import os
import re
import select
import stat
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager


class Slots:
    """The build's own slot, and the free slots of the jobserver in MAKEFLAGS."""

    def __init__(self, makeflags):
        reader, writer = os.pipe()
        os.write(writer, b"+")
        self._writers = {reader: writer}
        """The descriptor to return a token to, by the one to take it from."""
        named = re.search(r"--jobserver-auth=fifo:(\S+)", makeflags)
        if named and os.path.exists(named[1]) and stat.S_ISFIFO(os.stat(named[1]).st_mode):
            fifo = os.open(named[1], os.O_RDWR)
            self._writers[fifo] = fifo
        for descriptor in self._writers:
            os.set_blocking(descriptor, False)

    @contextmanager
    def acquire(self):
        """Wait for a slot, and release it at the end."""
        reader, token = self._take()
        try:
            yield
        finally:
            os.write(self._writers[reader], token)

    def _take(self):
        while True:
            for reader in select.select(list(self._writers), [], [])[0]:
                try:
                    return reader, os.read(reader, 1)
                except BlockingIOError:  # another thread or build was faster
                    continue

    def close(self):
        for descriptor in {*self._writers, *self._writers.values()}:
            os.close(descriptor)


class BackgroundBuild:
    """The commands of one `build_ext`, each on a slot and in a thread that waits for it."""

    def __init__(self, slots):
        self._slots = slots
        self._pool = ThreadPoolExecutor(4 * (os.cpu_count() or 1))
        self._objects = {}
        self._links = []
        self._done = 0
        self._failure = None
        self._submitting = threading.RLock()
        self._counting = threading.Lock()

    def compile(self, command, compiler, obj, src, *args, **kwargs):
        """Return before the file is compiled."""
        file = os.path.realpath(obj)
        with self._submitting:
            if file in self._objects:  # of the previous module, which is linked first
                self.finish()
            compiler = copy.copy(compiler)  # torch changes its program for some files
            self._objects[file] = self._pool.submit(
                self._run, [], src, command, compiler, obj, src, *args, **kwargs
            )

    def link(self, command, compiler, target_desc, objects, output_filename, *args, **kwargs):
        """Return before the module is linked: it may need the previous module."""
        with self._submitting:
            files = map(os.path.realpath, objects)
            needs = [self._objects[file] for file in files if file in self._objects]
            needs += self._links[-1:]
            args = (copy.copy(compiler), target_desc, objects, output_filename, *args)
            self._links.append(
                self._pool.submit(self._run, needs, output_filename, command, *args, **kwargs)
            )

    def _run(self, needs, name, command, *args, **kwargs):
        """Run a command after the others, unless one of them failed."""
        wait(needs)
        with self._slots.acquire():
            if self._failure:
                return
            try:
                command(*args, **kwargs)
            except BaseException as error:
                self._failure = self._failure or error
                return
        with self._counting:
            self._done += 1
            if self._failure:  # progress after an error would make it look harmless
                return
            print(f"[{self._done}/{len(self._objects) + len(self._links)}] {name}")

    def finish(self):
        """Wait for all commands, and raise the first failure; no command starts after it."""
        try:
            wait([*self._objects.values(), *self._links])
        except BaseException as error:
            self._failure = error
            raise
        if self._failure:
            raise self._failure
        self._objects, self._links, self._done = {}, [], 0

    def close(self):
        self._pool.shutdown()
        self._slots.close()


def compile_in_parallel(makeflags):
    """Make the loaded setuptools compile and link modules for torch in the background."""
    from distutils.command.build_ext import build_ext
    from distutils.unixccompiler import UnixCCompiler

    from setuptools.command.build_ext import build_ext as setuptools_build_ext

    compile_now, link_now = UnixCCompiler._compile, UnixCCompiler.link
    build_extensions = build_ext.build_extensions
    known = (build_ext.build_extension, setuptools_build_ext.build_extension)
    builds = []

    def compile_later(*args, **kwargs):
        if builds:
            return builds[-1].compile(compile_now, *args, **kwargs)
        return compile_now(*args, **kwargs)

    def link_later(*args, **kwargs):
        if builds:
            return builds[-1].link(link_now, *args, **kwargs)
        return link_now(*args, **kwargs)

    def is_serial(command):
        """Return whether ninja builds the modules, or a subclass must build them in order."""
        return (
            getattr(command, "use_ninja", True)
            or command.parallel
            or type(command).build_extension not in known  # it may use a linked module
            or any(module.optional for module in command.extensions)  # these may fail
        )

    def build_in_background(self):
        if is_serial(self):
            return build_extensions(self)
        with closing(BackgroundBuild(Slots(makeflags))) as build:
            builds.append(build)
            try:
                build_extensions(self)
            finally:
                builds.remove(build)
                build.finish()

    UnixCCompiler._compile = compile_later
    UnixCCompiler.link = link_later
    build_ext.build_extensions = build_in_background
