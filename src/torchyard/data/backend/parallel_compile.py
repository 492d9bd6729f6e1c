"""Compile the files of an extension in parallel, on the slots of a jobserver, without ninja.

torch's `BuildExtension` with `use_ninja=False` lets setuptools compile one file after another.
With this, files are compiled in the background, a module is linked when its files are compiled and
the module before it is linked, and the build goes on when all are. The commands are the same.

This runs in the environment of the project, so with other Pythons and any release of setuptools.
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
    """The slot that this build has, and those that are free in the jobserver of MAKEFLAGS."""

    def __init__(self, makeflags):
        reader, writer = os.pipe()
        os.write(writer, b"+")
        self._writers = {reader: writer}
        """Where a token is returned to, by where it is taken from."""
        named = re.search(r"--jobserver-auth=fifo:(\S+)", makeflags)
        if named and os.path.exists(named[1]) and stat.S_ISFIFO(os.stat(named[1]).st_mode):
            fifo = os.open(named[1], os.O_RDWR)
            self._writers[fifo] = fifo
        for descriptor in self._writers:
            os.set_blocking(descriptor, False)

    @contextmanager
    def acquire(self):
        """Wait for a slot, and release it in the end."""
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
                except BlockingIOError:  # another thread or build took it
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
            if file in self._objects:  # of another module, which has to be linked before
                self.finish()
            compiler = copy.copy(compiler)  # torch sets another program in it for some files
            self._objects[file] = self._pool.submit(
                self._run, [], src, command, compiler, obj, src, *args, **kwargs
            )

    def link(self, command, compiler, target_desc, objects, output_filename, *args, **kwargs):
        """Return before the module is linked, which may need the module before it."""
        with self._submitting:
            files = map(os.path.realpath, objects)
            needs = [self._objects[file] for file in files if file in self._objects]
            needs += self._links[-1:]
            args = (copy.copy(compiler), target_desc, objects, output_filename, *args)
            self._links.append(
                self._pool.submit(self._run, needs, output_filename, command, *args, **kwargs)
            )

    def _run(self, needs, name, command, *args, **kwargs):
        """Run a command when others have ended, unless one has failed."""
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
        """Wait for all commands, and raise the first failure: nothing begins after it."""
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
    """Make setuptools, which is loaded, compile and link modules for torch in the background."""
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
        """Return whether ninja builds the modules, or they must be built one after another."""
        return (
            getattr(command, "use_ninja", True)
            or command.parallel
            or type(command).build_extension not in known  # it may use a module once it is linked
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
