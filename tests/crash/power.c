/*
 * A layer that remembers what a power loss would take. Preloaded into the server by tests/crash/power.rs.
 *
 * Every change below $POWER_ROOT goes to the real files, so that the server reads what it wrote; before it, what it
 * replaces goes to the journal $POWER_JOURNAL. A sync writes nothing to any disk: it notes in the journal which changes
 * are durable from then on. The test undoes the others, newest first, once the server is dead. Names are durable when
 * their directory was synced, contents when their file was: a new file that is synced may still have no name.
 *
 * What must never enter: a call that changes a file and is not noted. Those that are not modelled end the process.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_FD 65536
#define REAL(name) ((__typeof__(&name))real(#name))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *root;
static size_t root_length;
static int journal = -1;
static uint64_t stashed;
/* Inodes of open descriptors below the root; 0: none of ours. */
static uint64_t inodes[MAX_FD];

struct note {
    uint32_t magic;
    uint32_t kind;
    uint64_t inode, offset, length;
    uint32_t first, second, data, pad;
};

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

static void die(const char *what) {
    dprintf(2, "power: %s is not modelled\n", what);
    abort();
}

__attribute__((constructor)) static void begin(void) {
    root = getenv("POWER_ROOT");
    const char *path = getenv("POWER_JOURNAL");
    if (!root || !path) return;
    root_length = strlen(root);
    journal = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (journal < 0) abort();
}

static int below(const char *path) {
    return journal >= 0 && path && !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

/* The directory that has the root's own name: only its syncs count. */
static int holds_root(const char *path) {
    if (journal < 0 || !path) return 0;
    size_t length = (size_t)(strrchr(root, '/') - root);
    return strlen(path) == length && !strncmp(path, root, length);
}

static uint64_t inode_of(const char *path) {
    struct stat found;
    return stat(path, &found) ? 0 : found.st_ino;
}

static uint64_t parent_of(const char *path) {
    char parent[4096];
    snprintf(parent, sizeof parent, "%s", path);
    char *end = strrchr(parent, '/');
    if (!end) return 0;
    *end = 0;
    return inode_of(parent);
}

static void put(const void *bytes, size_t length) {
    const char *at = bytes;
    while (length) {
        ssize_t done = REAL(write)(journal, at, length);
        if (done <= 0) abort();
        at += done;
        length -= (size_t)done;
    }
}

/* Under the lock. One write a note, as far as the system allows: a killed process leaves no half of one. */
static void note(char kind, uint64_t inode, uint64_t offset, uint64_t length, const char *first, const char *second,
                 const void *data, size_t size) {
    struct note head = {0x52574f50, (uint32_t)kind, inode, offset, length,
                        (uint32_t)(first ? strlen(first) : 0), (uint32_t)(second ? strlen(second) : 0), (uint32_t)size, 0};
    size_t all = sizeof head + head.first + head.second + size;
    char *text = malloc(all);
    if (!text) abort();
    memcpy(text, &head, sizeof head);
    memcpy(text + sizeof head, first ? first : "", head.first);
    memcpy(text + sizeof head + head.first, second ? second : "", head.second);
    if (size) memcpy(text + sizeof head + head.first + head.second, data, size);
    put(text, all);
    free(text);
}

static uint64_t tracked(int fd) {
    return journal >= 0 && fd >= 0 && fd < MAX_FD ? inodes[fd] : 0;
}

/* What a range of a file holds, before it is changed. */
static void note_range(int fd, uint64_t inode, uint64_t offset, uint64_t length) {
    struct stat found;
    if (fstat(fd, &found)) abort();
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int readable = REAL(open)(path, O_RDONLY | O_CLOEXEC);
    if (readable < 0) abort();
    uint64_t size = (uint64_t)found.st_size;
    uint64_t kept = offset >= size ? 0 : (size - offset < length ? size - offset : length);
    char *former = malloc(kept ? kept : 1);
    uint64_t done = 0;
    while (done < kept) {
        ssize_t got = pread(readable, former + done, kept - done, (off_t)(offset + done));
        if (got <= 0) abort();
        done += (uint64_t)got;
    }
    REAL(close)(readable);
    note('w', inode, offset, size, NULL, NULL, former, kept);
    free(former);
}

static void opened(int fd, const char *path) {
    if (fd < 0 || fd >= MAX_FD) return;
    inodes[fd] = below(path) ? inode_of(path) : 0;
}

static int open_path(const char *name, int directory, const char *path, int flags, mode_t mode) {
    if (!below(path)) {
        int fd = ((int (*)(int, const char *, int, ...))real("openat"))(directory, path, flags, mode);
        if (fd >= 0 && fd < MAX_FD) inodes[fd] = holds_root(path) ? inode_of(path) : 0;
        return fd;
    }
    (void)name;
    if ((flags & O_TMPFILE) == O_TMPFILE) die("O_TMPFILE");
    pthread_mutex_lock(&lock);
    struct stat found;
    int there = !lstat(path, &found);
    if (there && (flags & O_TRUNC) && S_ISREG(found.st_mode) && found.st_size) {
        int fd = REAL(open)(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            note_range(fd, found.st_ino, 0, (uint64_t)found.st_size);
            REAL(close)(fd);
        }
    }
    if (!there && (flags & O_CREAT)) note('c', parent_of(path), 0, 0, path, NULL, NULL, 0);
    int fd = ((int (*)(int, const char *, int, ...))real("openat"))(directory, path, flags, mode);
    int error = errno;
    opened(fd, path);
    pthread_mutex_unlock(&lock);
    errno = error;
    return fd;
}

static mode_t mode_of(int flags, va_list arguments) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name)                                             \
    int name(const char *path, int flags, ...) {               \
        va_list arguments;                                     \
        va_start(arguments, flags);                            \
        mode_t mode = mode_of(flags, arguments);               \
        va_end(arguments);                                     \
        return open_path(#name, AT_FDCWD, path, flags, mode);  \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                            \
    int name(int directory, const char *path, int flags, ...) { \
        va_list arguments;                                      \
        va_start(arguments, flags);                             \
        mode_t mode = mode_of(flags, arguments);                \
        va_end(arguments);                                      \
        return open_path(#name, directory, path, flags, mode);  \
    }
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
    if (fd >= 0 && fd < MAX_FD) inodes[fd] = 0;
    return REAL(close)(fd);
}

/* Another descriptor of the same file. */
static int doubled(int old, int new) {
    if (old >= 0 && old < MAX_FD && new >= 0 && new < MAX_FD) inodes[new] = inodes[old];
    return new;
}
int dup(int old) { return doubled(old, REAL(dup)(old)); }
int dup2(int old, int new) { return doubled(old, REAL(dup2)(old, new)); }
int dup3(int old, int new, int flags) { return doubled(old, REAL(dup3)(old, new, flags)); }

#define FCNTL(name)                                                                             \
    int name(int fd, int command, ...) {                                                        \
        va_list arguments;                                                                      \
        va_start(arguments, command);                                                           \
        void *argument = va_arg(arguments, void *);                                             \
        va_end(arguments);                                                                      \
        int done = ((int (*)(int, int, ...))real(#name))(fd, command, argument);                \
        return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? doubled(fd, done) : done;     \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

#define PWRITE(name)                                                              \
    ssize_t name(int fd, const void *bytes, size_t count, off_t offset) {         \
        uint64_t inode = tracked(fd);                                             \
        if (!inode) return REAL(name)(fd, bytes, count, offset);                  \
        pthread_mutex_lock(&lock);                                                \
        note_range(fd, inode, (uint64_t)offset, count);                           \
        ssize_t done = REAL(name)(fd, bytes, count, offset);                      \
        int error = errno;                                                        \
        pthread_mutex_unlock(&lock);                                              \
        errno = error;                                                            \
        return done;                                                              \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t write(int fd, const void *bytes, size_t count) {
    uint64_t inode = tracked(fd);
    if (!inode) return REAL(write)(fd, bytes, count);
    pthread_mutex_lock(&lock);
    struct stat found;
    off_t at = fcntl(fd, F_GETFL) & O_APPEND ? (fstat(fd, &found), found.st_size) : lseek(fd, 0, SEEK_CUR);
    note_range(fd, inode, (uint64_t)at, count);
    ssize_t done = REAL(write)(fd, bytes, count);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

#define TRUNCATE(name)                                                                           \
    int name(int fd, off_t length) {                                                             \
        uint64_t inode = tracked(fd);                                                            \
        if (!inode) return REAL(name)(fd, length);                                               \
        pthread_mutex_lock(&lock);                                                               \
        note_range(fd, inode, (uint64_t)length, UINT64_MAX);                                     \
        int done = REAL(name)(fd, length);                                                       \
        int error = errno;                                                                       \
        pthread_mutex_unlock(&lock);                                                             \
        errno = error;                                                                           \
        return done;                                                                             \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

/* What came before it is durable; no disk is waited for. */
static int synced(int fd) {
    pthread_mutex_lock(&lock);
    note('s', tracked(fd), 0, 0, NULL, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return 0;
}

int fsync(int fd) { return tracked(fd) ? synced(fd) : REAL(fsync)(fd); }
int fdatasync(int fd) { return tracked(fd) ? synced(fd) : REAL(fdatasync)(fd); }

/* Promises nothing: it begins to write. */
int sync_file_range(int fd, off_t offset, off_t count, unsigned flags) {
    return tracked(fd) ? 0 : REAL(sync_file_range)(fd, offset, count, flags);
}

/* Keeps what loses its name, so that the test can give it back. */
static void stash(const char *path, char *kept, size_t size) {
    struct stat found;
    kept[0] = 0;
    if (lstat(path, &found) || !S_ISREG(found.st_mode)) return;
    snprintf(kept, size, "%s.%d.%llu", getenv("POWER_JOURNAL"), getpid(), (unsigned long long)stashed++);
    if (REAL(link)(path, kept)) abort();
}

static int unlink_path(const char *path) {
    pthread_mutex_lock(&lock);
    char kept[4096];
    stash(path, kept, sizeof kept);
    if (kept[0]) note('u', parent_of(path), 0, 0, path, kept, NULL, 0);
    int done = REAL(unlink)(path);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

int unlink(const char *path) { return below(path) ? unlink_path(path) : REAL(unlink)(path); }
int unlinkat(int directory, const char *path, int flags) {
    return below(path) && !flags ? unlink_path(path) : REAL(unlinkat)(directory, path, flags);
}

static int rename_path(const char *from, const char *to, unsigned flags) {
    struct stat there;
    if ((flags & ~1u) || (flags && !lstat(to, &there))) die("renameat2 with flags");
    pthread_mutex_lock(&lock);
    char kept[4096];
    stash(to, kept, sizeof kept);
    if (kept[0]) note('u', parent_of(to), 0, 0, to, kept, NULL, 0);
    note('r', parent_of(to), 0, 0, from, to, NULL, 0);
    int done = REAL(rename)(from, to);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

int rename(const char *from, const char *to) {
    return below(from) || below(to) ? rename_path(from, to, 0) : REAL(rename)(from, to);
}
int renameat(int old, const char *from, int new, const char *to) {
    return below(from) || below(to) ? rename_path(from, to, 0) : REAL(renameat)(old, from, new, to);
}
int renameat2(int old, const char *from, int new, const char *to, unsigned flags) {
    return below(from) || below(to) ? rename_path(from, to, flags) : REAL(renameat2)(old, from, new, to, flags);
}

static int link_path(const char *from, const char *to) {
    pthread_mutex_lock(&lock);
    note('c', parent_of(to), 0, 0, to, NULL, NULL, 0);
    int done = REAL(link)(from, to);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

int link(const char *from, const char *to) { return below(to) ? link_path(from, to) : REAL(link)(from, to); }

int linkat(int old, const char *from, int new, const char *to, int flags) {
    return below(to) ? link_path(from, to) : REAL(linkat)(old, from, new, to, flags);
}

int mkdir(const char *path, mode_t mode) {
    if (!below(path)) return REAL(mkdir)(path, mode);
    pthread_mutex_lock(&lock);
    struct stat found;
    if (lstat(path, &found)) note('c', parent_of(path), 0, 0, path, NULL, NULL, 0);
    int done = REAL(mkdir)(path, mode);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

/* Not modelled: they would change a file behind the journal's back. */
ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (tracked(fd)) die("writev");
    return REAL(writev)(fd, parts, count);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    if (tracked(fd)) die("pwritev");
    return REAL(pwritev)(fd, parts, count, offset);
}
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t count, unsigned flags) {
    if (tracked(out)) die("copy_file_range");
    return REAL(copy_file_range)(in, from, out, to, count, flags);
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
    if (tracked(fd)) die("fallocate");
    return REAL(fallocate)(fd, mode, offset, length);
}
void *mmap64(void *at, size_t length, int protection, int flags, int fd, off64_t offset) {
    if ((flags & MAP_SHARED) && (protection & PROT_WRITE) && tracked(fd)) die("mmap");
    return REAL(mmap64)(at, length, protection, flags, fd, offset);
}
