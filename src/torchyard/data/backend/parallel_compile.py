"""Compile the files of a setuptools project in parallel, on the slots of a jobserver.

setuptools compiles one file after another. With this, a file is compiled in the background, a
module is linked as soon as its files are compiled, and the build goes on when all are linked. The
commands are the same.

This runs in the environment of the project, so with other Pythons and any release of setuptools.
"""

import copy
import os
import re
import select
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager


class Slots:
    """The slot of this build, and those that are free in the jobserver of MAKEFLAGS."""

    def __init__(self, makeflags):
        own, own_end = os.pipe()
        os.write(own_end, b"+")
        self._ends = {own: own_end}
        shared = re.search(r"--jobserver-auth=fifo:(\S+)", makeflags)
        if shared and os.access(shared[1], os.R_OK | os.W_OK):
            fifo = os.open(shared[1], os.O_RDWR)
            self._ends[fifo] = fifo
        for end in self._ends:
            os.set_blocking(end, False)

    @contextmanager
    def one(self):
        """Wait for a slot, and return it to where it came from."""
        end, token = self._take()
        try:
            yield
        finally:
            os.write(self._ends[end], token)

    def _take(self):
        while True:
            for end in select.select(list(self._ends), [], [])[0]:
                try:
                    return end, os.read(end, 1)
                except BlockingIOError:  # another one was faster
                    continue


class BackgroundBuild:
    """The commands of one `build_ext`, each on a slot and in a thread that waits for it."""

    _MOST = 256
    """Threads; most of them wait for a slot."""

    def __init__(self, slots):
        self._slots = slots
        self._pool = ThreadPoolExecutor(self._MOST)
        self._objects = {}
        self._links = []
        self._done = 0
        self._count = threading.Lock()

    def compile(self, command, compiler, output, source, *args):
        if output in self._objects:  # of another module, which has to be linked before
            self.finish()
        compiler = copy.copy(compiler)  # torch changes it for each file
        self._objects[output] = self._pool.submit(
            self._run, [], source, command, compiler, output, source, *args
        )

    def link(self, command, compiler, kind, objects, output, *args, **kwargs):
        needs = [self._objects[name] for name in objects if name in self._objects]
        self._links.append(
            self._pool.submit(
                self._run, needs, output, command, compiler, kind, objects, output, *args, **kwargs
            )
        )

    def _run(self, needs, name, command, *args, **kwargs):
        for need in needs:
            need.result()
        with self._slots.one():
            command(*args, **kwargs)
        with self._count:
            self._done += 1
            print(f"[{self._done}/{len(self._objects) + len(self._links)}] {name}")

    def finish(self):
        """Wait for everything; after a failure, for what is running, and raise it."""
        jobs = [*self._objects.values(), *self._links]
        for job in wait(jobs, return_when=FIRST_EXCEPTION).not_done:
            job.cancel()
        wait(jobs)
        failures = [job.exception() for job in jobs if not job.cancelled() and job.exception()]
        if failures:
            raise failures[0]
        self._objects, self._links, self._done = {}, [], 0


def compile_in_parallel(makeflags):
    """Make setuptools, which is loaded, compile and link in the background."""
    from distutils.command.build_ext import build_ext
    from distutils.unixccompiler import UnixCCompiler

    from setuptools.command.build_ext import build_ext as own_build_ext

    compile_file, link, build_extensions = (
        UnixCCompiler._compile,
        UnixCCompiler.link,
        build_ext.build_extensions,
    )
    usual = (build_ext.build_extension, own_build_ext.build_extension)
    builds = []

    def compile_later(*args):
        return builds[-1].compile(compile_file, *args) if builds else compile_file(*args)

    def link_later(*args, **kwargs):
        return builds[-1].link(link, *args, **kwargs) if builds else link(*args, **kwargs)

    def build_in_background(self):
        is_own = type(self).build_extension not in usual  # it may use a module once it is linked
        if is_own or self.parallel or any(module.optional for module in self.extensions):
            return build_extensions(self)
        builds.append(BackgroundBuild(Slots(makeflags)))
        try:
            build_extensions(self)
        finally:
            builds.pop().finish()

    UnixCCompiler._compile = compile_later
    UnixCCompiler.link = link_later
    build_ext.build_extensions = build_in_background
