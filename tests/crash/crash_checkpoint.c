/*
 * crash_checkpoint.c: a job writes checkpoints, as its agents and its driver do, and dies at the
 * k-th call that changes the directory, for every k: before the call, in the middle of a write, or
 * with the power of the machine, so that changes that were not synced are lost, all or some. Or the
 * call fails, as on a full disk. The next driver must find the newest checkpoint that was reported
 * complete, or a newer one, with all its values; and the next checkpoints leave nothing behind.
 *
 *     crash_checkpoint [LIVES]     with as many random lives more; without, some calls are left out
 */
#include "base/rng.h"
#include "driver/checkpoint/catalog.h"
#include "proto/commit.h"
#include "tests/crash/calls.h"
#include "tests/lib/checkpoints.h"
#include "tests/lib/files.h"
#include "tests/lib/power.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMIT(round, place) (COMMIT_FIRST_OF(round) | (place))
#define KEEP                 2
#define WAIT_MS              100000 /* the bound of a hang */
#define PATH_BYTES           1024

static char root[64];
static char dir[128];

/* ---- the call that strikes ------------------------------------------------------------------- */

enum strike { STRIKE_KILL, STRIKE_TEAR, STRIKE_FAIL, STRIKE_POWER, STRIKE_POWER_PARTS, STRIKES };

static const char *const strike_names[STRIKES] = { "killed", "killed in a write", "failed",
                                                   "power lost", "power lost, some written" };

static enum strike strike;
static unsigned strike_at; /* 0: never */
static unsigned calls;
static struct rng power_rng;
/* of all above, and of the changes that power.c keeps: two threads change the directory; recursive,
 * because power_fail changes it too */
static pthread_mutex_t strike_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* Counts a call; the caller holds the lock. true: it is the one that fails, with errno. */
static bool strikes(void)
{
    if (!strike_at || ++calls != strike_at)
        return false;
    if (strike == STRIKE_FAIL) {
        errno = strike_at % 2 ? ENOSPC : EIO;
        return true;
    }
    strike_at = 0; /* undoing changes is no change */
    if (strike >= STRIKE_POWER)
        power_fail(strike == STRIKE_POWER_PARTS ? &power_rng : NULL);
    raise(SIGKILL);
    return true;
}

static void path_of_fd(int fd, char path[PATH_BYTES])
{
    char link[64];
    ssize_t length;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    length = readlink(link, path, PATH_BYTES - 1);
    path[length > 0 ? length : 0] = '\0';
}

static void path_at(int at, const char *name, char path[PATH_BYTES])
{
    size_t length;

    path_of_fd(at, path);
    length = strlen(path);
    snprintf(path + length, PATH_BYTES - length, "/%s", name);
}

/* Notes that this file is about to lose its name. */
static void note_deleted(const char *path)
{
    static struct file_bytes old[2]; /* the parts have more bytes than one of them */
    int fd = __real_open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0)
        return;
    got = read(fd, old, sizeof(old));
    close(fd);
    if (got >= 0)
        power_note_deleted(path, old, (size_t)got);
}

/* The file LOCK alone is made by its path; its bytes are only a hint. */
int __wrap_open(const char *path, int flags, ...)
{
    bool failed = false;

    if (flags & O_CREAT) {
        pthread_mutex_lock(&strike_lock);
        failed = strikes();
        pthread_mutex_unlock(&strike_lock);
    }
    return failed ? -1 : __real_open(path, flags, 0600);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    bool failed;

    pthread_mutex_lock(&strike_lock);
    failed = strikes();
    pthread_mutex_unlock(&strike_lock);
    return failed ? -1 : __real_mkdir(path, mode);
}

int __wrap_mkdirat(int at, const char *name, mode_t mode)
{
    bool failed;

    pthread_mutex_lock(&strike_lock);
    failed = strikes();
    pthread_mutex_unlock(&strike_lock);
    return failed ? -1 : __real_mkdirat(at, name, mode);
}

int __wrap_openat(int at, const char *name, int flags, ...)
{
    char path[PATH_BYTES];
    mode_t mode = 0;
    va_list args;
    int fd = -1;

    va_start(args, flags);
    if (flags & O_CREAT)
        mode = va_arg(args, mode_t);
    va_end(args);
    if (!(flags & O_CREAT))
        return __real_openat(at, name, flags);
    pthread_mutex_lock(&strike_lock);
    path_at(at, name, path);
    if (!strikes()) {
        fd = __real_openat(at, name, flags, mode);
        if (fd >= 0 && power_is_on())
            power_note_created(path);
    }
    pthread_mutex_unlock(&strike_lock);
    return fd;
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
    bool failed;

    pthread_mutex_lock(&strike_lock);
    failed = strikes();
    pthread_mutex_unlock(&strike_lock);
    return failed ? -1 : __real_fallocate(fd, mode, offset, length);
}

/* Only files count: a descriptor that wakes the loop changes no directory. */
ssize_t __wrap_write(int fd, const void *bytes, size_t length)
{
    char path[PATH_BYTES];
    ssize_t wrote = -1;
    struct stat st;

    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        return __real_write(fd, bytes, length);
    pthread_mutex_lock(&strike_lock);
    if (strike == STRIKE_TEAR && strike_at && calls + 1 == strike_at)
        (void)!__real_write(fd, bytes, length / 2);
    if (!strikes()) {
        path_of_fd(fd, path);
        if (power_is_on())
            power_note_bytes(path, st.st_size, (int64_t)length, NULL, 0);
        wrote = __real_write(fd, bytes, length);
    }
    pthread_mutex_unlock(&strike_lock);
    return wrote;
}

int __wrap_fsync(int fd)
{
    char path[PATH_BYTES];
    struct stat st;
    int rc = -1;

    pthread_mutex_lock(&strike_lock);
    if (!strikes()) {
        path_of_fd(fd, path);
        rc = __real_fsync(fd);
        if (power_is_on() && !fstat(fd, &st) && S_ISDIR(st.st_mode))
            power_synced_directory();
        else if (power_is_on())
            power_synced(path);
    }
    pthread_mutex_unlock(&strike_lock);
    return rc;
}

int __wrap_renameat(int from_at, const char *from, int to_at, const char *to)
{
    char from_path[PATH_BYTES], to_path[PATH_BYTES];
    int rc = -1;

    pthread_mutex_lock(&strike_lock);
    if (!strikes()) {
        path_at(from_at, from, from_path);
        path_at(to_at, to, to_path);
        if (power_is_on())
            note_deleted(to_path);
        rc = __real_renameat(from_at, from, to_at, to);
        if (power_is_on())
            power_note_renamed(from_path, to_path);
    }
    pthread_mutex_unlock(&strike_lock);
    return rc;
}

/* The removal of a folder counts as durable with all that was removed in it. */
int __wrap_unlinkat(int at, const char *name, int flags)
{
    char path[PATH_BYTES];
    int rc = -1;

    pthread_mutex_lock(&strike_lock);
    if (!strikes()) {
        path_at(at, name, path);
        if (power_is_on() && !(flags & AT_REMOVEDIR))
            note_deleted(path);
        rc = __real_unlinkat(at, name, flags);
        if (power_is_on() && !rc && (flags & AT_REMOVEDIR))
            power_synced_directory();
    }
    pthread_mutex_unlock(&strike_lock);
    return rc;
}

/* ---- the job --------------------------------------------------------------------------------- */

static int await(struct catalog *catalog, struct catalog_result *result)
{
    struct pollfd fd = { catalog_fd(catalog), POLLIN, 0 };

    do
        while (!catalog_next(catalog, result))
            if (poll(&fd, 1, WAIT_MS) != 1)
                return HVD_E_TIMEOUT;
    while (result->event == CATALOG_NOTE);
    return result->code;
}

/* Writes `count` checkpoints ROUND.1, ROUND.2 ...; a failed attempt is made again with the next
 * commit. Says on `acks` which are complete. 0, or the code of the beginning. */
static int write_checkpoints(uint32_t round, uint32_t count, int acks)
{
    const struct catalog_options options = { dir, NULL, KEEP, "job", "id", false };
    struct checkpoint_manifest manifest;
    struct checkpoint_store *store = NULL;
    struct catalog_result result;
    struct catalog *catalog = NULL;
    int rc = catalog_start(&options, &catalog, NULL);

    if (!rc)
        rc = await(catalog, &result);
    if (rc == HVD_E_NOTFOUND)
        rc = 0;
    if (!rc)
        rc = checkpoint_store_open(dir, &store, NULL);
    for (uint32_t made = 0, place = 1; !rc && made < count && place < 9; place++) {
        uint64_t commit = COMMIT(round, place);

        if (checkpoints_write_parts(store, commit, place, &manifest, NULL))
            continue;
        rc = catalog_complete(catalog, place, &manifest);
        checkpoint_manifest_release(&manifest);
        if (!rc && !await(catalog, &result)) {
            made++;
            if (__real_write(acks, &commit, sizeof(commit)) != sizeof(commit))
                abort();
        }
    }
    checkpoint_store_close(store);
    (void)catalog_stop(catalog, TIME_NEVER);
    return rc;
}

/* ---- deaths ---------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st;
    (void)kind;
    (void)walk;
    return remove(path);
}

/* The beginnings: no directory; complete checkpoints; these, and an attempt that died. */
static void begin_with(int what)
{
    struct checkpoint_store *store;
    struct checkpoint_manifest manifest;

    (void)nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (what == 0)
        return;
    if (checkpoint_store_make(dir, &store, NULL) || checkpoints_write(store, COMMIT(1, 1), NULL) ||
        checkpoints_write(store, COMMIT(1, 2), NULL))
        abort();
    if (what > 1) {
        if (checkpoints_write_parts(store, COMMIT(1, 3), 1, &manifest, NULL))
            abort();
        checkpoint_manifest_release(&manifest);
    }
    checkpoint_store_close(store);
}

/* A child works and is struck. Returns its status. *ret_newest: the newest commit that it reported
 * complete; unchanged: none. */
static int live_and_strike(unsigned at, uint64_t *ret_newest, bool *ret_struck)
{
    uint64_t commit;
    int status, ends[2];
    pid_t child;

    if (pipe(ends) || (child = fork()) < 0)
        abort();
    if (!child) {
        int rc;

        close(ends[0]);
        rng_seed(&power_rng, at);
        if (strike >= STRIKE_POWER)
            power_on();
        strike_at = at;
        rc = write_checkpoints(2, 1, ends[1]);
        commit = 0;
        if (calls >= at && __real_write(ends[1], &commit, sizeof(commit)) != sizeof(commit))
            abort();
        _exit(rc ? 1 : 0);
    }
    close(ends[1]);
    *ret_struck = false;
    while (read(ends[0], &commit, sizeof(commit)) == sizeof(commit))
        if (commit)
            *ret_newest = commit;
        else
            *ret_struck = true;
    close(ends[0]);
    if (waitpid(child, &status, 0) != child)
        abort();
    *ret_struck = *ret_struck || WIFSIGNALED(status);
    return status;
}

/* Checks the newest complete checkpoint: its values, and that it is not older than `newest`. */
static bool holds(uint64_t newest, struct hvd_err *err)
{
    struct checkpoint_manifest manifest;
    struct checkpoint_store *store;
    int rc = checkpoint_store_open(dir, &store, err);

    if (rc)
        return newest == 0;
    rc = checkpoint_find_newest(store, NULL, NULL, &manifest, err);
    if (!rc) {
        rc = checkpoints_check(store, &manifest, err);
        if (!rc && manifest.commit < newest)
            rc = err_set(err, HVD_E_LOST, "a complete checkpoint was lost");
        checkpoint_manifest_release(&manifest);
    }
    checkpoint_store_close(store);
    return !rc || (rc == HVD_E_NOTFOUND && newest == 0);
}

static unsigned entries;

static int count_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)path;
    (void)st;
    (void)kind;
    (void)walk;
    entries++;
    return 0;
}

/* The next job works as if nothing had happened, and leaves KEEP checkpoints, LOCK and OWNER. */
static bool goes_on(int beginning, struct hvd_err *err)
{
    const unsigned files = 4 + 2; /* parts, manifest.json, COMPLETE */
    int sink = __real_open("/dev/null", O_WRONLY | O_CLOEXEC);
    uint32_t count = beginning ? 1 : KEEP;
    int rc = write_checkpoints(3, count, sink);

    close(sink);
    entries = 0;
    (void)nftw(dir, count_entry, 16, FTW_PHYS);
    if (rc || entries != 1 + 2 + KEEP * (1 + files))
        (void)!err_set(err, rc, "the next job: code %d, %u entries are left", rc, entries);
    return !rc && entries == 1 + 2 + KEEP * (1 + files) && holds(COMMIT(3, count), err);
}

/* One life with one strike. true: it was struck. Ends the program if something is lost. */
static bool strike_once(int beginning, unsigned at)
{
    uint64_t newest = beginning ? COMMIT(1, 2) : 0;
    struct hvd_err err = { .code = 0 };
    bool struck, right;
    int status;

    begin_with(beginning);
    status = live_and_strike(at, &newest, &struck);
    right = WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL
                                : strike == STRIKE_FAIL || WEXITSTATUS(status) == 0;
    if (right && holds(newest, &err) && goes_on(beginning, &err))
        return struck;
    printf("beginning %d, %s at call %u (status %x), newest %llx: %s: %s\n", beginning,
           strike_names[strike], at, (unsigned)status, (unsigned long long)newest, err.text, dir);
    exit(1);
}

int main(int argc, char **argv)
{
    unsigned long lives = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned strikes_made = 0;
    unsigned most = 1;
    struct rng rng;

    snprintf(root, sizeof(root), "%s/hvd-checkpoint-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (argc > 2 || !mkdtemp(root))
        return 2;
    snprintf(dir, sizeof(dir), "%s/checkpoints", root);
    for (strike = 0; strike < STRIKES; strike++) {
        unsigned each = lives || strike == STRIKE_KILL ? 1 : 3;

        for (unsigned at = 1 + (unsigned)strike % each; strike_once(2, at); at += each) {
            strikes_made++;
            most = at > most ? at : most;
        }
        printf("%-24s %u strikes up to here\n", strike_names[strike], strikes_made);
        fflush(stdout);
    }
    rng_seed(&rng, lives);
    for (unsigned long i = 0; i < lives; i++) {
        strike = (enum strike)rng_below(&rng, STRIKES);
        strikes_made += strike_once((int)rng_below(&rng, 3), 1 + (unsigned)rng_below(&rng, most));
    }
    (void)nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    printf("%u deaths and failures, no complete checkpoint was lost\n", strikes_made);
    return strikes_made >= 100 ? 0 : 1;
}
