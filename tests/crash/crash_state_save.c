/*
 * crash_state_save.c: a process saves its state (hvd_state_save) and dies at the k-th call that
 * changes the directory, for every k: before the call, or in the middle of a write. Or the k-th
 * call fails, as on a disk that is full. Afterwards another process finds the new state or the one
 * before it, never a third one and never none, and its next save leaves nothing behind.
 */
#include "hvd/hvd.h"
#include "tests/crash/calls.h"
#include "tests/lib/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WEIGHTS 300000 /* more than one chunk */

static char root[64];
static char dir[128];

/* ---- the call that strikes ------------------------------------------------------------------- */

enum strike { STRIKE_KILL, STRIKE_TEAR, STRIKE_FAIL, STRIKE_COUNT };

static enum strike strike;
static unsigned strike_at; /* 0: never */
static unsigned calls;

/* Counts a call. true: it is the one that fails, with errno. */
static bool strikes(void)
{
    if (!strike_at || ++calls != strike_at)
        return false;
    if (strike != STRIKE_FAIL)
        raise(SIGKILL);
    errno = ENOSPC;
    return true;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    return strikes() ? -1 : __real_mkdir(path, mode);
}

int __wrap_mkdirat(int at, const char *name, mode_t mode)
{
    return strikes() ? -1 : __real_mkdirat(at, name, mode);
}

int __wrap_openat(int at, const char *name, int flags, ...)
{
    mode_t mode = 0;
    va_list args;

    va_start(args, flags);
    if (flags & O_CREAT)
        mode = va_arg(args, mode_t);
    va_end(args);
    if ((flags & O_CREAT) && strikes())
        return -1;
    return __real_openat(at, name, flags, mode);
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
    return strikes() ? -1 : __real_fallocate(fd, mode, offset, length);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t length)
{
    if (strike == STRIKE_TEAR && strike_at && calls + 1 == strike_at)
        (void)!__real_write(fd, bytes, length / 2);
    return strikes() ? -1 : __real_write(fd, bytes, length);
}

int __wrap_fsync(int fd)
{
    return strikes() ? -1 : __real_fsync(fd);
}

int __wrap_renameat(int from_at, const char *from, int to_at, const char *to)
{
    return strikes() ? -1 : __real_renameat(from_at, from, to_at, to);
}

int __wrap_unlinkat(int at, const char *name, int flags)
{
    return strikes() ? -1 : __real_unlinkat(at, name, flags);
}

/* ---- the program ----------------------------------------------------------------------------- */

static float weights[WEIGHTS];
static int64_t step;
static int32_t mine;

static int64_t save_step(void *arg, void *into, size_t room)
{
    (void)arg;
    if (room < sizeof(step))
        return HVD_E_LIMIT;
    memcpy(into, &step, sizeof(step));
    return sizeof(step);
}

static int load_step(void *arg, const void *from, size_t bytes)
{
    (void)arg;
    memcpy(&step, from, bytes < sizeof(step) ? bytes : sizeof(step));
    return 0;
}

static void set(int64_t to)
{
    step = to;
    mine = (int32_t)to;
    for (size_t i = 0; i < WEIGHTS; i++)
        weights[i] = (float)to;
}

static hvd_state *make_state(void)
{
    hvd_state *state = hvd_state_create();

    if (!state || hvd_state_add_array(state, "weights", weights, WEIGHTS, HVD_FLOAT32) ||
        hvd_state_add_array_per_rank(state, "mine", &mine, 1, HVD_INT32) ||
        hvd_state_add_custom(state, "step", 1 << 20, save_step, load_step, NULL))
        abort();
    return state;
}

static int save(int64_t value)
{
    hvd_state *state = make_state();
    int rc;

    set(value);
    rc = hvd_state_save(state, dir);
    hvd_state_free(state);
    return rc;
}

/* Returns the step that another process finds; 0: none; -1: entries of different steps, or an
 * error. */
static int64_t found(void)
{
    hvd_state *state = make_state();
    int rc;

    set(-7);
    rc = hvd_state_load(state, dir);
    hvd_state_free(state);
    if (rc == HVD_E_NOTFOUND)
        return 0;
    if (rc || weights[0] < (float)step || weights[WEIGHTS - 1] > (float)step ||
        mine != (int32_t)step)
        return -1;
    return step;
}

/* ---- deaths ---------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st;
    (void)kind;
    (void)walk;
    return remove(path);
}

static unsigned count_names(const char *path)
{
    DIR *stream = opendir(path);
    unsigned count = 0;

    while (stream && readdir(stream))
        count++;
    if (stream)
        closedir(stream);
    return count;
}

/* The beginnings: no directory; a saved state; a saved state beside the rest of a dead save. */
static void begin_with(int what)
{
    char path[160];

    (void)nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (what > 0 && save(1))
        abort();
    if (what > 1) {
        snprintf(path, sizeof(path), "%s/commit-0.2", dir);
        if (mkdir(path, 0700))
            abort();
        snprintf(path, sizeof(path), "%s/commit-0.2/.x.unfinished", dir);
        files_write(path, "half", 4);
    }
}

/* A child saves step 2 and is struck at this call. Returns its status: killed, or the exit code 0
 * (saved), 1 (an error). *ret_struck: there was such a call. */
static int save_and_strike(unsigned at, bool *ret_struck)
{
    int status;
    int ends[2];
    char byte;
    pid_t child;

    if (pipe(ends))
        abort();
    child = fork();
    if (child < 0)
        abort();
    if (!child) {
        int rc;

        strike_at = at;
        rc = save(2);
        strike_at = 0;
        if (calls >= at && __real_write(ends[1], "s", 1) != 1)
            abort();
        _exit(rc ? 1 : 0);
    }
    close(ends[1]);
    if (waitpid(child, &status, 0) != child)
        abort();
    *ret_struck = read(ends[0], &byte, 1) == 1 || WIFSIGNALED(status);
    close(ends[0]);
    return status;
}

/* Strikes at each call of a save that begins like this. Returns how often. */
static unsigned strike_everywhere(int beginning)
{
    bool struck = true;

    for (unsigned at = 1;; at++) {
        int64_t before = beginning ? 1 : 0;
        int64_t after;
        int status;

        begin_with(beginning);
        status = save_and_strike(at, &struck);
        after = found();
        if (after != 2 && (after != before || (WIFEXITED(status) && !WEXITSTATUS(status)))) {
            printf("beginning %d, strike %d at call %u (status %x): found %lld: %s\n", beginning,
                   (int)strike, at, (unsigned)status, (long long)after, hvd_last_error());
            exit(1);
        }
        /* The next process saves as if nothing had happened, and leaves one folder beside
         * "." and "..". */
        if (save(3) || found() != 3 || count_names(dir) != 3) {
            printf("beginning %d, strike %d at call %u: the next save: %u names, %s\n", beginning,
                   (int)strike, at, count_names(dir), hvd_last_error());
            exit(1);
        }
        if (!struck)
            return at - 1;
    }
}

int main(void)
{
    unsigned strikes_made = 0;

    snprintf(root, sizeof(root), "%s/hvd-save-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(root))
        return 2;
    snprintf(dir, sizeof(dir), "%s/saved", root);
    for (strike = 0; strike < STRIKE_COUNT; strike++)
        for (int beginning = 0; beginning < 3; beginning++)
            strikes_made += strike_everywhere(beginning);
    (void)nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    printf("%u deaths and failures, nothing was lost\n", strikes_made);
    return strikes_made >= 200 ? 0 : 1;
}
