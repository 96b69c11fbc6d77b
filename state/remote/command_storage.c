/*
 * command_storage.c: the objects of checkpoints through a program, which is run once for each
 * operation: put, get, list, delete. Called through the table of
 * state/checkpoint/storage_internal.h. Invariant: no run outlives its time limit, this process or
 * the call that ends the run: the whole process group of the program is killed then; and the output
 * of the program is checked before it is used.
 */
#include "state/remote/command_storage.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "base/vec.h"
#include "os/clock.h"
#include "os/owned_process.h"
#include "state/checkpoint/storage_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND_LIMIT_US (2 * TIME_MIN)
/* the time limit of a call grows by one second for each block of this many bytes */
#define COMMAND_A_SECOND   (64 * 1024)
#define COMMAND_WORDS      32                         /* most words of the program's command line */
#define COMMAND_LIST_MAX   ((size_t)16 * 1024 * 1024) /* most bytes of a list */
#define COMMAND_WHY_MAX    200                        /* most bytes of the reason of a failure */
#define COMMAND_NOT_FOUND  3  /* the exit code for "there is no such object" */
#define COMMAND_NUMBER_MAX 24 /* bytes for a number as text */

struct command_storage {
    struct checkpoint_store base;
    int64_t limit_us; /* time limit of one run, without the time for its bytes */
    char *words;      /* the program and its first words, each with its NUL */
    const char *argv[COMMAND_WORDS + 5];
    size_t argc; /* number of words in argv */
};

/* One run of the program. */
struct command_run {
    pid_t pid;                 /* the program; 0: it does not run */
    int watch;                 /* a pidfd: readable when the program has ended */
    int in, out, err;          /* our ends of the program's input, output and standard error */
    int64_t until_us;          /* when the time limit of this run ends */
    char why[COMMAND_WHY_MAX]; /* the first line that the program printed on standard error */
    size_t why_length;         /* bytes in `why` */
    bool why_whole; /* true: the first line has ended, so no further byte belongs to it */
};

struct command_object {
    struct checkpoint_object base;
    struct command_run run;
};

/* Returns the struct of this file whose first member is `storage`. */
static struct command_storage *command_storage_of(struct checkpoint_store *storage)
{
    return CONTAINER_OF(storage, struct command_storage, base);
}

/* Closes a descriptor, if it is open, and sets it to -1. */
static void command_storage_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Ends a run: closes its pipes, and kills the process group of the program, if it still runs.
 * Returns the wait status. */
static int command_end(struct command_run *run)
{
    int status = 0;

    command_storage_end(&run->in);
    command_storage_end(&run->out);
    command_storage_end(&run->err);
    if (run->pid > 0) {
        kill(-run->pid, SIGKILL);
        status = owned_process_end(run->pid, run->watch);
    }
    command_storage_end(&run->watch);
    run->pid = 0;
    return status;
}

/* Starts the program with an operation, a name, and up to two more words (NULL: none). `bytes`: how
 * many bytes the run will move at most; its time limit grows with them. */
static int command_storage_begin(struct command_storage *storage, const char *operation,
                                 const char *name, const char *first, const char *second,
                                 uint64_t bytes, struct command_run *run, struct hvd_err *err)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, errors[2] = { -1, -1 };
    size_t argc = storage->argc;
    struct process_spec spec = { .argv = storage->argv, .group = true, .dies_with_us = SIGKILL };
    struct hvd_err why = { .text = "" };
    int rc;

    *run = (struct command_run){ .in = -1, .out = -1, .err = -1, .watch = -1 };
    storage->argv[argc] = operation;
    storage->argv[argc + 1] = name;
    storage->argv[argc + 2] = first;
    storage->argv[argc + 3] = first ? second : NULL;
    /* A socket and not a pipe: a write to a closed socket need not raise SIGPIPE. */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) || pipe2(out, O_CLOEXEC) ||
        pipe2(errors, O_CLOEXEC)) {
        rc = err_set(err, HVD_E_LIMIT,
                     "%s: the program cannot be started: %s; raise the limit on open files "
                     "(ulimit -n)",
                     storage->base.where, strerror(errno));
    } else {
        spec.in = in[1];
        spec.out = out[1];
        spec.err = errors[1];
        rc = owned_process_start(&spec, &run->pid, &run->watch, &why);
        if (rc) /* HVD_E_NOTFOUND would mean that an object is missing, and not the program */
            rc = err_set(err, rc == HVD_E_NOTFOUND ? HVD_E_INVAL : rc, "%s", why.text);
    }
    run->in = in[0];
    run->out = out[0];
    run->err = errors[0];
    command_storage_end(&in[1]);
    command_storage_end(&out[1]);
    command_storage_end(&errors[1]);
    run->until_us =
        clock_now_us() + storage->limit_us + (int64_t)(bytes / COMMAND_A_SECOND) * TIME_S;
    if (rc)
        (void)command_end(run);
    else
        for (int i = 0; i < 3; i++)
            (void)fcntl(i == 0 ? run->in : i == 1 ? run->out : run->err, F_SETFL, O_NONBLOCK);
    return rc;
}

/* Moves bytes between this process and the program. With `from`: until all its bytes were sent;
 * without `from`: until the program has ended. The output of the program is added to `out` (may be
 * NULL). HVD_E_TIMEOUT; HVD_E_LIMIT: the program prints more than `out` may hold; HVD_E_IO: the
 * program ended before it has read all bytes. */
static int command_move(struct command_run *run, const char *from, size_t bytes, struct buf *out)
{
    bool sends = from != NULL; /* false: nothing more can be sent */

    while (!sends || bytes > 0) {
        struct pollfd fds[] = {
            {.fd = run->err,              .events = POLLIN },
            { .fd = run->out,             .events = POLLIN },
            { .fd = run->watch,           .events = POLLIN },
            { .fd = sends ? run->in : -1, .events = POLLOUT}
        };
        int64_t left_us = run->until_us - clock_now_us();
        char printed[16384];
        ssize_t got = 0;

        if (left_us <= 0)
            return HVD_E_TIMEOUT;
        if (poll(fds, ARRAY_SIZE(fds), left_us > TIME_S ? 1000 : (int)(left_us / TIME_MS) + 1) < 0)
            continue;
        if (fds[0].revents) { /* the first line of standard error is the reason of a failure */
            got = read(run->err, printed, sizeof(printed));
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
                command_storage_end(&run->err);
            for (ssize_t i = 0; i < got && !run->why_whole; i++) {
                run->why_whole = printed[i] == '\n' || run->why_length == COMMAND_WHY_MAX - 1;
                if (!run->why_whole)
                    run->why[run->why_length++] =
                        (unsigned char)printed[i] < ' ' ? ' ' : printed[i];
            }
            got = 0;
        }
        if (fds[1].revents) {
            got = read(run->out, printed, sizeof(printed));
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
                command_storage_end(&run->out);
            if (got > 0 && out && buf_append(out, printed, (size_t)got))
                return HVD_E_LIMIT;
        }
        /* the program has ended, and all that it has printed was read */
        if (fds[2].revents && !fds[0].revents && got <= 0)
            return from ? HVD_E_IO : 0;
        if (fds[3].revents) {
            got = send(run->in, from, bytes, MSG_NOSIGNAL);
            if (got < 0 && errno != EAGAIN && errno != EINTR)
                sends = false; /* the reason follows when the program ends */
            from += got > 0 ? got : 0;
            bytes -= got > 0 ? (size_t)got : 0;
        }
    }
    return 0;
}

/* Ends the run of an operation (`doing`), and turns the way in which it ended into a code and an
 * error. `rc` is the result of command_move. */
static int command_judge(const struct checkpoint_store *storage, const char *doing,
                         const char *name, struct command_run *run, int rc, struct hvd_err *err)
{
    int status = command_end(run);
    char how[64], signal[TEXT_SIGNAL_MAX];

    if (!rc && WIFEXITED(status) && !WEXITSTATUS(status))
        return 0;
    if (rc == HVD_E_TIMEOUT)
        snprintf(how, sizeof(how), "the program did not end in time, and was killed");
    else if (rc == HVD_E_LIMIT)
        snprintf(how, sizeof(how), "the program printed more bytes than it was asked for");
    else if (WIFEXITED(status))
        snprintf(how, sizeof(how), "exit code %d", WEXITSTATUS(status));
    else
        snprintf(how, sizeof(how), "the program was ended by %s",
                 text_signal(WTERMSIG(status), signal));
    if (rc != HVD_E_TIMEOUT && rc != HVD_E_LIMIT)
        rc = WIFEXITED(status) && WEXITSTATUS(status) == COMMAND_NOT_FOUND ? HVD_E_NOTFOUND
                                                                           : HVD_E_IO;
    return err_set(err, rc, "%.200s: %s %s: %s%s%s; correct the program of --checkpoint-command",
                   storage->where, doing, name, how, run->why_length ? ": " : "", run->why);
}

/* Runs the program for an operation that gets no input and only prints, such as "get" and
 * "list". */
static int command_ask(struct checkpoint_store *base, const char *operation, const char *name,
                       const char *first, const char *second, struct buf *out, struct hvd_err *err)
{
    struct command_run run;
    int rc = command_storage_begin(command_storage_of(base), operation, name, first, second,
                                   out && first ? out->max : 0, &run, err);

    if (rc)
        return rc;
    command_storage_end(&run.in);
    rc = command_move(&run, NULL, 0, out);
    return command_judge(base, operation, name, &run, rc, err);
}

/* ---- the functions of the table checkpoint_store_ops ---- */

/* Frees the storage. No run of the program is left then: each ends with its call or its object. */
static void command_storage_close(struct checkpoint_store *base)
{
    struct command_storage *storage = command_storage_of(base);

    mem_free(storage->words);
    mem_free(storage->base.where);
    mem_free(storage);
}

/* Begins a "put": the program runs from now on and reads the object from its standard input. */
static int command_storage_create(struct checkpoint_store *base, const char *name, uint64_t bytes,
                                  struct checkpoint_object **ret_object, struct hvd_err *err)
{
    struct command_object *object = mem_zalloc(sizeof(*object));
    char number[COMMAND_NUMBER_MAX];
    int rc;

    if (!object)
        return err_set(err, HVD_E_NOMEM,
                       "%.200s: no memory to run the program; free memory on this host",
                       base->where);
    snprintf(number, sizeof(number), "%" PRIu64, bytes);
    rc = command_storage_begin(command_storage_of(base), "put", name, number, NULL, bytes,
                               &object->run, err);
    if (rc)
        mem_free(object);
    else
        *ret_object = &object->base;
    return rc;
}

/* Sends the next bytes of the object to the program. */
static int command_storage_write(struct checkpoint_object *base, const void *at, size_t bytes,
                                 struct hvd_err *err)
{
    struct command_object *object = CONTAINER_OF(base, struct command_object, base);
    int rc = bytes ? command_move(&object->run, at, bytes, NULL) : 0;

    return rc ? command_judge(base->storage, "put", base->name, &object->run, rc, err) : 0;
}

/* Ends a "put" early: the program is killed, and must not have made the object. */
static void command_storage_abandon(struct checkpoint_object *base)
{
    struct command_object *object = CONTAINER_OF(base, struct command_object, base);

    (void)command_end(&object->run);
    mem_free(object);
}

/* Ends a "put": closes the program's input and waits for its end. Exit code 0 means that the object
 * is durable. */
static int command_storage_finish(struct checkpoint_object *base, struct hvd_err *err)
{
    struct command_object *object = CONTAINER_OF(base, struct command_object, base);
    int rc;

    command_storage_end(&object->run.in);
    rc = command_move(&object->run, NULL, 0, NULL);
    rc = command_judge(base->storage, "put", base->name, &object->run, rc, err);
    command_storage_abandon(base);
    return rc;
}

/* The names that a list has already shown, as copies. */
struct command_names VEC(char *);

/* Asks the program for the list of all objects whose names begin with `prefix`. The caller releases
 * `out` in any case. */
static int command_list(struct checkpoint_store *base, const char *prefix, struct buf *out,
                        struct hvd_err *err)
{
    buf_init(out, COMMAND_LIST_MAX);
    return command_ask(base, "list", prefix, NULL, NULL, out, err);
}

/* Cuts the next line off a list: the number of bytes of an object, a blank, and its name. Lines
 * that are not of this form, and names without the prefix, are ignored. */
static bool command_next_line(struct span *rest, const char *prefix, uint64_t *ret_bytes,
                              struct span *ret_name)
{
    struct span line, number;

    while (span_next(rest, '\n', &line))
        if (span_next(&line, ' ', &number) && line.at &&
            !text_parse_u64(number, 0, INT64_MAX, "", ret_bytes, NULL) &&
            line.length >= strlen(prefix) && line.length <= LIMIT_CHECKPOINT_NAME_BYTES &&
            !memcmp(line.at, prefix, strlen(prefix)) && text_is_clean(line.at, line.length)) {
            *ret_name = line;
            return true;
        }
    return false;
}

/* Gives the size of an object, as the list of the program says it. */
static int command_storage_size(struct checkpoint_store *base, const char *name,
                                uint64_t *ret_bytes, struct hvd_err *err)
{
    struct span rest, found;
    struct buf out;
    bool there = false;
    int rc = command_list(base, name, &out, err);

    rest = (struct span){ buf_text(&out), out.length };
    while (!rc && !there && command_next_line(&rest, name, ret_bytes, &found))
        there = span_is(found, name);
    buf_release(&out);
    if (!rc && !there)
        rc = err_set(err, HVD_E_NOTFOUND,
                     "%.200s/%s: the list of the program does not have this object", base->where,
                     name);
    return rc;
}

/* Reads bytes of an object: the output of "get" must have exactly these bytes. */
static int command_storage_read(struct checkpoint_store *base, const char *name, uint64_t offset,
                                void *at, size_t bytes, struct hvd_err *err)
{
    char from[COMMAND_NUMBER_MAX], length[COMMAND_NUMBER_MAX];
    struct buf out;
    int rc;

    if (!bytes)
        return 0;
    snprintf(from, sizeof(from), "%" PRIu64, offset);
    snprintf(length, sizeof(length), "%zu", bytes);
    buf_init(&out, bytes);
    rc = command_ask(base, "get", name, from, length, &out, err);
    if (!rc && out.length < bytes)
        rc = err_set(err, HVD_E_CORRUPT,
                     "%.200s/%s: the object ends at byte %" PRIu64
                     ", %zu bytes too early; use another checkpoint",
                     base->where, name, offset + out.length, bytes - out.length);
    if (!rc)
        memcpy(at, out.data, bytes);
    buf_release(&out);
    return rc;
}

/* Visits each name below the folder once: the list has full names, in any order. */
static int command_storage_list(struct checkpoint_store *base, const char *folder,
                                checkpoint_store_visit_fn *visit, void *arg, struct hvd_err *err)
{
    char prefix[LIMIT_CHECKPOINT_NAME_BYTES + 2], one[LIMIT_CHECKPOINT_NAME_BYTES + 1];
    struct command_names seen = { .count = 0 };
    struct span rest, name;
    struct buf out;
    uint64_t bytes;
    int rc;

    snprintf(prefix, sizeof(prefix), "%s%s", folder, *folder ? "/" : "");
    rc = command_list(base, prefix, &out, err);
    rest = (struct span){ buf_text(&out), out.length };
    while (!rc && command_next_line(&rest, prefix, &bytes, &name)) {
        size_t skip = strlen(prefix), i = 0;

        snprintf(one, sizeof(one), "%.*s", (int)(name.length - skip), name.at + skip);
        one[strcspn(one, "/")] = '\0';
        /* The names of one folder mostly follow each other in a list, so the newest names of `seen`
         * are compared first. */
        while (i < seen.count && strcmp(seen.items[seen.count - 1 - i], one) != 0)
            i++;
        if (!*one || i < seen.count)
            continue;
        rc = VEC_RESERVE(&seen, 1, LIMIT_CHECKPOINTS + LIMIT_CHECKPOINT_FILES);
        if (!rc && !(seen.items[seen.count] = mem_strdup(one)))
            rc = HVD_E_NOMEM;
        seen.count += rc == 0;
        rc = rc ? err_set(
                      err, rc,
                      "%.200s: the list of the program has too many names, or there is no "
                      "memory for them (%s); remove old checkpoints, or free memory on this host",
                      base->where, err_text(rc))
                : visit(arg, one);
    }
    for (size_t i = 0; i < seen.count; i++)
        mem_free(seen.items[i]);
    VEC_RELEASE(&seen);
    buf_release(&out);
    return rc;
}

/* Removes an object, or all objects of a folder: the list has both, and each is deleted by a run of
 * its own. */
static int command_storage_remove(struct checkpoint_store *base, const char *name,
                                  struct hvd_err *err)
{
    char prefix[LIMIT_CHECKPOINT_NAME_BYTES + 2], one[LIMIT_CHECKPOINT_NAME_BYTES + 1];
    struct span rest, found;
    struct buf out;
    uint64_t bytes;
    int rc;

    snprintf(prefix, sizeof(prefix), "%s/", name);
    rc = command_list(base, name, &out, err);
    rest = (struct span){ buf_text(&out), out.length };
    while (!rc && command_next_line(&rest, name, &bytes, &found)) {
        if (!span_is(found, name) && strncmp(found.at, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(one, sizeof(one), "%.*s", (int)found.length, found.at);
        rc = command_ask(base, "delete", one, NULL, NULL, NULL, err);
        if (rc == HVD_E_NOTFOUND)
            rc = 0;
    }
    buf_release(&out);
    return rc;
}

static const struct checkpoint_store_ops command_ops = {
    command_storage_close,  command_storage_create,  command_storage_write,
    command_storage_finish, command_storage_abandon, command_storage_size,
    command_storage_read,   command_storage_list,    command_storage_remove
};

/* Opens the storage: takes the address apart into the words of the storage program's command line,
 * separated by blanks. `test` true: one "list" shows whether the storage program works. */
int command_storage_open_with(const char *where, bool test, int64_t limit_us,
                              struct checkpoint_store **ret_store, struct hvd_err *err)
{
    struct command_storage *storage = mem_zalloc(sizeof(*storage));
    struct buf out;
    int rc = 0;

    if (!storage)
        return err_set(err, HVD_E_NOMEM,
                       "%.200s: no memory to open this storage; free memory on this host", where);
    storage->base.ops = &command_ops;
    storage->base.directory = -1;
    storage->base.where = mem_strdup(where);
    storage->words = mem_strdup(where + strlen(COMMAND_SCHEME));
    storage->limit_us = limit_us;
    if (!storage->base.where || !storage->words)
        rc = err_set(err, HVD_E_NOMEM,
                     "%.200s: no memory to open this storage; free memory on this host", where);
    for (char *next = storage->words; next && *next && storage->argc < COMMAND_WORDS;) {
        next += strspn(next, " ");
        if (*next)
            storage->argv[storage->argc++] = next;
        next += strcspn(next, " ");
        if (*next)
            *next++ = '\0';
    }
    if (!rc && (!storage->argc || *storage->argv[0] != '/'))
        rc = err_set(
            err, HVD_E_INVAL,
            "%.200s: the path of the program must be absolute, because hosts have different "
            "working directories; write the whole path, from the root",
            where);
    if (!rc && test) {
        rc = command_list(&storage->base, "commit-", &out, err);
        buf_release(&out);
    }
    if (rc)
        command_storage_close(&storage->base);
    else
        *ret_store = &storage->base;
    return rc;
}

/* Opens the storage with the usual time limit of a run. */
int command_storage_open(const char *where, bool test, struct checkpoint_store **ret_store,
                         struct hvd_err *err)
{
    return command_storage_open_with(where, test, COMMAND_LIMIT_US, ret_store, err);
}
