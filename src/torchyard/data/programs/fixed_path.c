/* Runs a program that sees directories at other paths, where the kernel allows no namespaces.

     fixed-path [--bind REAL SEEN]... [--setenv NAME VALUE]... [--chdir DIR] -- PROGRAM [WORD]...

   These are options of bubblewrap; `--args HANDLE` reads some from a handle, each ending in NUL.
   The program and its descendants are traced. Paths that they pass to the kernel and that begin
   with SEEN are replaced by REAL, and the kernel's answers that are paths, the other way round. A
   filter stops only the system calls that take paths. It protects nothing. It needs no rights, only
   ptrace of its own children. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#ifndef __NR_io_uring_setup
#define __NR_io_uring_setup 425 /* on all processors */
#endif

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
typedef struct user_regs_struct Registers;
static unsigned long long *argument(Registers *r, int n) {
  unsigned long long *all[] = {&r->rdi, &r->rsi, &r->rdx, &r->r10};
  return all[n];
}
#define NUMBER(r) ((r)->orig_rax)
#define PLACE(r) ((r)->rip)
enum { CALL_SIZE = 2 };
#define RESULT(r) ((r)->rax)
#define STACK(r) ((r)->rsp)
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
typedef struct user_regs_struct Registers;
static unsigned long long *argument(Registers *r, int n) { return &r->regs[n]; }
#define NUMBER(r) ((r)->regs[8])
#define PLACE(r) ((r)->pc)
enum { CALL_SIZE = 4 };
#define RESULT(r) ((r)->regs[0])
#define STACK(r) ((r)->sp)
#else
#error "this processor is not supported"
#endif

/* The arguments of a system call that are paths: their numbers, and which is the directory handle
   of the first one; -1 for none. `target` is that of a symbolic link, which need not exist. */
enum { PLAIN, GETCWD, READLINK, EXEC, SOCKET, GROW, GREW };
static const struct Call {
  int number, path, handle, other, target, kind;
} calls[] = {
#define AT(name, path, handle) {__NR_##name, path, handle, -1, -1, PLAIN},
#define ONE(name) AT(name, 0, -1)
    {__NR_getcwd, -1, -1, -1, -1, GETCWD},
    {__NR_readlinkat, 1, 0, -1, -1, READLINK},
    {__NR_execve, 0, -1, -1, -1, EXEC},
    {__NR_bind, -1, -1, -1, -1, SOCKET},
    {__NR_connect, -1, -1, -1, -1, SOCKET},
    {__NR_renameat2, 1, 0, 3, -1, PLAIN},
    {__NR_linkat, 1, 0, 3, -1, PLAIN},
    {__NR_symlinkat, 2, 1, -1, 0, PLAIN},
    AT(openat, 1, 0) AT(openat2, 1, 0) AT(newfstatat, 1, 0) AT(statx, 1, 0) AT(faccessat, 1, 0)
    AT(faccessat2, 1, 0) AT(execveat, 1, 0) AT(mkdirat, 1, 0) AT(unlinkat, 1, 0)
    AT(fchmodat, 1, 0) AT(fchownat, 1, 0) AT(utimensat, 1, 0) AT(mknodat, 1, 0)
    AT(inotify_add_watch, 1, -1)
    ONE(chdir) ONE(truncate) ONE(statfs) ONE(getxattr) ONE(lgetxattr) ONE(setxattr) ONE(lsetxattr)
    ONE(listxattr) ONE(llistxattr) ONE(removexattr) ONE(lremovexattr)
#ifdef __NR_renameat
    {__NR_renameat, 1, 0, 3, -1, PLAIN},
#endif
#ifdef __NR_fchmodat2
    AT(fchmodat2, 1, 0)
#endif
#ifdef __NR_open
    {__NR_readlink, 0, -1, -1, -1, READLINK},
    {__NR_rename, 0, -1, 1, -1, PLAIN},
    {__NR_link, 0, -1, 1, -1, PLAIN},
    {__NR_symlink, 1, -1, -1, 0, PLAIN},
    AT(futimesat, 1, 0)
    ONE(open) ONE(creat) ONE(stat) ONE(lstat) ONE(access) ONE(mkdir) ONE(rmdir) ONE(unlink)
    ONE(chmod) ONE(chown) ONE(lchown) ONE(utime) ONE(utimes) ONE(mknod)
#endif
};
enum { CALLS = sizeof calls / sizeof *calls, MOST = 64, LONG = 2 * PATH_MAX };

static struct Map {
  const char *real, *seen;
  int handle; /* of the real directory */
} maps[MOST];
static int map_count;
static pid_t top;

/* A process whose system call was changed: how it was, for when the call ends. The stack of one that
   GREW was made larger for the call that it begins again. */
static struct Change {
  pid_t pid;
  int kind;
  Registers before;
} *changes;
static int change_count;
static int is_full; /* whether something could not be written below a stack */

static void fail(const char *what) {
  fprintf(stderr, "fixed-path: %s: %s\n", what, strerror(errno));
  exit(126);
}

static int is_below(const char *path, const char *folder) {
  size_t size = strlen(folder);
  return strncmp(path, folder, size) == 0 && (path[size] == '/' || path[size] == 0);
}

/* Returns the map that a path is in by its seen or its real name; a longer name is meant first. */
static struct Map *find(const char *path, int real) {
  struct Map *found = NULL;
  size_t longest = 0;
  for (struct Map *map = maps; map < maps + map_count; map++) {
    const char *name = real ? map->real : map->seen;
    if (is_below(path, name) && strlen(name) >= longest) {
      longest = strlen(name);
      found = map;
    }
  }
  return found;
}

/* Resolves `.`, `..` and empty names of an absolute path by their text alone. */
static void normalize(char *path) {
  char *end = path;
  for (char *word = path; *word;) {
    word += strspn(word, "/");
    size_t size = strcspn(word, "/");
    if (size == 2 && memcmp(word, "..", 2) == 0) {
      while (end > path && *--end != '/') {
      }
    } else if (size && !(size == 1 && *word == '.')) {
      *end++ = '/';
      memmove(end, word, size);
      end += size;
    }
    word += size;
  }
  if (end == path) *end++ = '/';
  *end = 0;
}

/* Puts the real path of one that is seen into `out`; returns 0 if it is in no map. */
static int to_real(const char *path, char *out) {
  char whole[LONG];
  if (strstr(path, "//") || strstr(path, "/.")) {  /* it may lead into a map, or out of one */
    strcpy(whole, path);
    normalize(whole);
    struct Map *map = find(whole, 0), *first = find(path, 0);
    if (map != first) path = whole;
    if (first && !map) return snprintf(out, LONG, "%s", whole) < LONG;
  }
  struct Map *map = find(path, 0);
  return map && snprintf(out, LONG, "%s%s", map->real, path + strlen(map->seen)) < LONG;
}

static int to_seen(const char *path, char *out) {
  struct Map *map = find(path, 1);
  if (!map) return 0;
  return snprintf(out, LONG, "%s%s", map->seen, path + strlen(map->real)) < LONG;
}

/* Reads from another process, or writes to it: by its file where containers refuse the calls. */
static ssize_t copy(pid_t pid, void *own, unsigned long long theirs, size_t size, int write) {
  struct iovec here = {own, size}, there = {(void *)theirs, size};
  ssize_t done = write ? process_vm_writev(pid, &here, 1, &there, 1, 0)
                       : process_vm_readv(pid, &here, 1, &there, 1, 0);
  if (done >= 0 || (errno != EPERM && errno != ENOSYS)) return done;
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/mem", pid);
  int file = open(name, O_RDWR | O_CLOEXEC);
  done = write ? pwrite(file, own, size, theirs) : pread(file, own, size, theirs);
  close(file);
  return done;
}

/* Reads a text of another process; returns 0 if it is none, or longer than a path. */
static int read_text(pid_t pid, unsigned long long from, char *out) {
  size_t done = 0;
  while (done < PATH_MAX) {
    size_t part = 256 - ((from + done) & 255);  /* within a page */
    ssize_t got = copy(pid, out + done, from + done, part, 0);
    if (got <= 0) return 0;
    if (memchr(out + done, 0, got)) return 1;
    done += got;
  }
  return 0;
}

static int linked(pid_t pid, const char *what, int handle, char *out) {
  char name[64];
  if (handle < 0) snprintf(name, sizeof name, "/proc/%d/%s", pid, what);
  else snprintf(name, sizeof name, "/proc/%d/fd/%d", pid, handle);
  ssize_t size = readlink(name, out, PATH_MAX);
  if (size < 0) return 0;
  out[size] = 0;
  return 1;
}

/* Whether a relative path has the last name of a map, so that it may lead into it from above. */
static int may_enter(const char *path) {
  for (int n = 0; n < map_count; n++)
    if (strstr(path, strrchr(maps[n].seen, '/') + 1)) return 1;
  return 0;
}

/* Puts the path for the kernel into `out`; returns 0 if it is the program's own. */
static int replace(pid_t pid, const char *path, int handle, char *out) {
  char from[LONG], whole[2 * LONG];
  if (*path == '/') return to_real(path, out);
  if (!(may_enter(path) || strstr(path, "..")) || !linked(pid, "cwd", handle, from)) return 0;
  if (*from != '/') return 0;  /* a pipe */
  struct Map *map = find(from, 1);
  if (!map) strcpy(whole, from);
  else to_seen(from, whole);
  strcat(strcat(whole, "/"), path);
  normalize(whole);
  if (find(whole, 0) == map) return 0;
  return to_real(whole, out) || snprintf(out, LONG, "%s", whole) < LONG;
}

static void get_registers(pid_t pid, Registers *r) {
  struct iovec whole = {r, sizeof *r};
  ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &whole);
}

static void set_registers(pid_t pid, Registers *r) {
  struct iovec whole = {r, sizeof *r};
  ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &whole);
}

/* Writes below the stack of a stopped process, and returns where. */
static unsigned long long push(pid_t pid, unsigned long long *stack, void *data, size_t size) {
  *stack = (*stack - size) & ~15ull;
  if (copy(pid, data, *stack, size, 1) == (ssize_t)size) return *stack;
  is_full = 1;
  return 0;
}

static unsigned long long push_text(pid_t pid, unsigned long long *stack, char *text) {
  return push(pid, stack, text, strlen(text) + 1);
}

/* Lets a script at a replaced path, or of an interpreter at one, be run as the kernel would, but by
   the names that the program knows. */
static int run_script(pid_t pid, Registers *r, unsigned long long *stack, char *path, char *real) {
  char line[256] = "", place[2 * LONG], interpreter[LONG];
  snprintf(place, sizeof place, *real == '/' ? "%s" : "/proc/%2$d/cwd/%1$s", real, pid);
  int file = open(place, O_RDONLY | O_NONBLOCK | O_CLOEXEC);  /* it may be a fifo */
  if (file < 0) return 0;
  ssize_t size = read(file, line, sizeof line - 1);
  close(file);
  if (size < 3 || line[0] != '#' || line[1] != '!' || access(place, X_OK)) return 0;
  line[strcspn(line, "\n")] = 0;
  char *name = line + 2 + strspn(line + 2, " \t");
  char *word = name + strcspn(name, " \t");
  if (*word) *word++ = 0;
  word += strspn(word, " \t");
  for (char *end = word + strlen(word); end > word && strchr(" \t", end[-1]);) *--end = 0;
  int is_mapped = to_real(name, interpreter);
  if (!is_mapped && real == path) return 0;
  if (!is_mapped) strcpy(interpreter, name);

  size_t count = 0, extra = 2 + (*word != 0);
  unsigned long long one, words = *argument(r, 1);
  while (words && copy(pid, &one, words + 8 * count, 8, 0) == 8 && one) count++;
  unsigned long long *list = calloc(count + extra + 1, 8);
  if (count > 1) copy(pid, list + extra, words + 8, 8 * (count - 1), 0);
  list[0] = push_text(pid, stack, name);
  if (*word) list[1] = push_text(pid, stack, word);
  list[extra - 1] = push_text(pid, stack, path);
  size_t total = (count > 1 ? count - 1 : 0) + extra;
  *argument(r, 0) = push_text(pid, stack, interpreter);
  *argument(r, 1) = push(pid, stack, list, 8 * (total + 1));
  free(list);
  return 1;
}

/* Keeps how a process was before its call was changed. */
static int change(pid_t pid, int kind, Registers *before) {
  changes = realloc(changes, (change_count + 1) * sizeof *changes);
  changes[change_count++] = (struct Change){pid, kind, *before};
  return 1;
}

/* Lets the process write that far below its stack, which no other may make larger, and begin anew.
   Old kernels let nothing be written far below the stack's own pointer. */
static int grow(pid_t pid, Registers *r, unsigned long long stack) {
  Registers before = *r;
  unsigned long long number = __NR_clock_gettime;
  *argument(r, 0) = 0;
  *argument(r, 1) = STACK(r) = stack - LONG;
  NUMBER(r) = number;
  set_registers(pid, r);
#ifdef NT_ARM_SYSTEM_CALL
  int called = number;
  struct iovec whole = {&called, sizeof called};
  ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &whole);
#endif
  return change(pid, GROW, &before);
}

static struct Change *changed(pid_t pid) {
  for (int n = 0; n < change_count; n++)
    if (changes[n].pid == pid) return changes + n;
  return NULL;
}

static void forget(pid_t pid) {
  struct Change *change = changed(pid);
  if (change) *change = changes[--change_count];
}

/* Lets a socket be at the real path, by a short name of its directory: there is little room. */
static int name_socket(pid_t pid, Registers *r, unsigned long long *stack) {
  struct sockaddr_un address = {0};
  char path[sizeof address.sun_path + 1] = "";
  size_t size = *argument(r, 2), room = sizeof address.sun_path;
  if (size > sizeof address || copy(pid, &address, *argument(r, 1), size, 0) != (ssize_t)size ||
      address.sun_family != AF_UNIX)
    return 0;
  memcpy(path, address.sun_path, room);
  struct Map *map = find(path, 0);
  if (!map || snprintf(address.sun_path, room, "/proc/%d/fd/%d%s", getpid(), map->handle,
                       path + strlen(map->seen)) >= (int)room)
    return 0;
  *argument(r, 1) = push(pid, stack, &address, sizeof address);
  *argument(r, 2) = sizeof address;
  return 1;
}

/* Handles the begin of a system call; returns whether its end is of interest. */
static int begin(pid_t pid) {
  Registers r, before;
  char path[LONG], real[LONG];
  struct Change *earlier = changed(pid);
  int has_grown = earlier && earlier->kind == GREW;
  forget(pid);
  get_registers(pid, &r);
  before = r;
  const struct Call *call = calls;
  while (call < calls + CALLS && (unsigned long long)call->number != NUMBER(&r)) call++;
  if (call == calls + CALLS) return 0;
  unsigned long long stack = STACK(&r) - 128;
  is_full = 0;
  int is_changed = call->kind == GETCWD || (call->kind == SOCKET && name_socket(pid, &r, &stack));
  int texts[] = {call->path, call->other, call->target};
  for (int n = 0; n < 3; n++) {
    if (texts[n] < 0 || !read_text(pid, *argument(&r, texts[n]), path)) continue;
    int handle = call->handle < 0 ? -1 : (int)*argument(&r, n == 1 ? 2 : call->handle);
    int is_new = n == 2 ? *path == '/' && to_real(path, real) : replace(pid, path, handle, real);
    if (call->kind == EXEC && run_script(pid, &r, &stack, path, is_new ? real : path)) {
      is_changed = 1;
    } else if (is_new) {
      *argument(&r, texts[n]) = push_text(pid, &stack, real);
      is_changed = 1;
    } else if (call->kind == READLINK && (*path != '/' || is_below(path, "/proc"))) {
      is_changed = 1;
    }
  }
  if (is_full && !has_grown) return grow(pid, &before, stack);
  if (is_full && call->path >= 0) *argument(&r, call->path) = 0;  /* it fails */
  if (!is_changed) return 0;
  if (memcmp(&r, &before, sizeof r)) set_registers(pid, &r);
  return change(pid, call->kind, &before);
}

/* Handles the end of a system call: registers are as before, and paths in the answer as seen. */
static void end(pid_t pid) {
  struct Change *change = changed(pid);
  if (!change || change->kind == GREW) return;
  Registers r;
  char text[LONG], seen[LONG];
  get_registers(pid, &r);
  long long result = RESULT(&r);
  Registers was = change->before;
  if (change->kind == GROW) {
    PLACE(&was) -= CALL_SIZE;
#ifdef __x86_64__
    was.rax = was.orig_rax;
    was.orig_rax = -1;
#endif
    set_registers(pid, &was);
    change->kind = GREW;
    return;
  }
  int at = change->kind == GETCWD ? 0 : NUMBER(&was) == __NR_readlinkat ? 2 : 1;
  unsigned long long buffer = *argument(&was, at), room = *argument(&was, at + 1);
  int is_path = change->kind == GETCWD || change->kind == READLINK;
  int is_whole = change->kind == GETCWD || result < (long long)room;  /* else it is asked again */
  if (is_path && is_whole && result > 0 && result < PATH_MAX &&
      copy(pid, text, buffer, result, 0) == result) {
    text[result] = 0;
    if (to_seen(text, seen)) {
      size_t size = strlen(seen) + (change->kind == GETCWD);
      if (size > room && change->kind == GETCWD) result = -ERANGE;
      else {
        result = size < room ? size : room;
        copy(pid, seen, buffer, result, 1);
      }
    }
  }
  for (int n = 0; n < 4; n++)
    if (argument(&r, n) != &RESULT(&r)) *argument(&r, n) = *argument(&was, n);
  RESULT(&r) = result;
  set_registers(pid, &r);
  forget(pid);
}

static const char *folder;

static void start(char **words, int gate) {
  struct sock_filter filter[CALLS + 12];
  int n = 0;
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, arch));
  filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 0, CALLS + 8);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, nr));
  /* By io_uring, paths would reach the kernel unseen; programs do without it. */
  filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
  /* Many stat a handle they have, by an empty path. */
  filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_newfstatat, 0, 4);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, args[3]));
  filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, AT_EMPTY_PATH, 0, 1);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  for (int i = 0; i < CALLS; i++)
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number,
                                               CALLS - i, 0);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  struct sock_fprog program = {n, filter};
  char go;
  if (read(gate, &go, 1) != 1) _exit(126);
  close(gate);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("no_new_privs");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) fail("seccomp");
  if (folder && chdir(folder)) fail(folder);
  execvp(words[0], words);
  fprintf(stderr, "fixed-path: execvp %s: %s\n", words[0], strerror(errno));
  _exit(127);
}

static void pass_on(int number) { kill(top, number); }

/* Reads options up to `--`; returns the number of the first word behind it. */
static int read_options(int count, char **words, int n) {
  for (; n < count && strcmp(words[n], "--"); n++) {
    int left = count - n - 1;
    if (left > 0 && !strcmp(words[n], "--chdir")) {
      folder = words[++n];
    } else if (left > 0 && !strcmp(words[n], "--args")) {
      static char *more[1 << 16];
      FILE *file = fdopen(atoi(words[++n]), "r");
      int found = 0;
      size_t size;
      while (file && found < 1 << 16 && (size = 0, more[found] = NULL,
                                         getdelim(&more[found], &size, 0, file) > 0))
        found++;
      read_options(found, more, 0);
      if (file) fclose(file);
    } else if (left > 1 && !strcmp(words[n], "--setenv")) {
      setenv(words[n + 1], words[n + 2], 1);
      n += 2;
    } else if (left > 1 && strstr(words[n], "bind") && map_count < MOST) {
      int handle = open(words[n + 1], O_PATH | O_CLOEXEC);
      maps[map_count++] = (struct Map){words[n + 1], words[n + 2], handle};
      n += 2;
    } else {
      errno = EINVAL;
      fail(words[n]);
    }
  }
  return n + 1;
}

int main(int count, char **words) {
  int gate[2], status, n = read_options(count, words, 1);
  if (n >= count || pipe2(gate, O_CLOEXEC)) fail("there is no program");
  top = fork();
  if (top < 0) fail("fork");
  if (top == 0) {
    close(gate[1]);
    start(words + n, gate[0]);
  }
  close(gate[0]);
  long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                 PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD |
                 PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SEIZE, top, 0, options)) {
    int why = errno;
    kill(top, SIGKILL);
    errno = why;
    fail("ptrace");
  }
  int passed[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  for (n = 0; n < 4; n++) signal(passed[n], pass_on);
  if (write(gate[1], "", 1) != 1) fail("write");
  close(gate[1]);
  for (;;) {
    pid_t pid = waitpid(-1, &status, __WALL);
    if (pid < 0) {
      if (errno == EINTR) continue;
      fail("wait");
    }
    if (!WIFSTOPPED(status)) {
      forget(pid);
      if (pid != top) continue;
      if (WIFEXITED(status)) return WEXITSTATUS(status);
      signal(WTERMSIG(status), SIG_DFL);
      raise(WTERMSIG(status));
      return 128 + WTERMSIG(status);
    }
    int number = WSTOPSIG(status), event = status >> 16;
    if (event == PTRACE_EVENT_SECCOMP) {
      ptrace(begin(pid) ? PTRACE_SYSCALL : PTRACE_CONT, pid, 0, 0);
    } else if (number == (SIGTRAP | 0x80)) {
      end(pid);
      ptrace(PTRACE_CONT, pid, 0, 0);
    } else if (event == PTRACE_EVENT_STOP && number != SIGTRAP) {
      ptrace(PTRACE_LISTEN, pid, 0, 0);
    } else if (event) {
      unsigned long former = pid;
      if (event == PTRACE_EVENT_EXEC) {
        ptrace(PTRACE_GETEVENTMSG, pid, 0, &former);
        forget(former);
        forget(pid);
      }
      ptrace(PTRACE_CONT, pid, 0, 0);
    } else {
      ptrace(PTRACE_CONT, pid, 0, number);
    }
  }
}
