/*
 * elastic_job.c: a whole elastic job that a bench starts, watches and ends. Called by the benches
 * that need a driver. Invariant: the job's folder is removed with the job.
 */
#include "bench/elastic_job.h"

#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_US        (120 * TIME_S)
#define BLOCKS_PATIENCE_US (10 * TIME_MIN)
#define PATH_MAX_          128
#define WORDS_MAX          64

static void path_of(const struct elastic_job *job, const char *name, char path[PATH_MAX_])
{
    snprintf(path, PATH_MAX_, "%s/%s", job->folder, name);
}

/* The driver never sees half of it. */
int elastic_job_hosts(struct elastic_job *job, uint32_t hosts, struct hvd_err *err)
{
    char path[PATH_MAX_], fresh[PATH_MAX_];
    FILE *file;

    path_of(job, "hosts", path);
    path_of(job, "hosts.new", fresh);
    file = fopen(fresh, "we");
    if (!file)
        return err_set(err, HVD_E_IO, "%s: %s", fresh, strerror(errno));
    for (uint32_t i = 1; i <= hosts; i++)
        fprintf(file, "127.0.0.%" PRIu32 ":%" PRIu32 "\n", i, job->plan.slots);
    if (fclose(file) || rename(fresh, path))
        return err_set(err, HVD_E_IO, "%s: %s", path, strerror(errno));
    return 0;
}

#ifndef BENCH_ELASTIC /* the build says where they are */
#define BENCH_ELASTIC "hvd-elastic"
#define BENCH_WORKER  "board_worker"
#endif

/* ---- the driver -------------------------------------------------------------------------------
 */

static int start_driver(struct elastic_job *job, struct hvd_err *err)
{
    const struct elastic_plan *plan = &job->plan;
    char state[PATH_MAX_], hosts[PATH_MAX_], board[PATH_MAX_], log[PATH_MAX_];
    char np[16], mib[16], step[16], boot[16];
    const char *words[WORDS_MAX] = { BENCH_ELASTIC,
                                     "--state-dir",
                                     state,
                                     "-np",
                                     np,
                                     "--min-np",
                                     "1",
                                     "--max-np",
                                     "unlimited",
                                     "--hostfile",
                                     hosts,
                                     "--discovery-interval",
                                     "50ms",
                                     "--blacklist-cooldown-range",
                                     "0",
                                     "0",
                                     "--slot-restarts",
                                     "0",
                                     "--gather",
                                     "5s",
                                     "--kill-grace",
                                     "2s" };
    const char *const worker[] = { "--", BENCH_WORKER, board, mib, step, boot, plan->mode };
    size_t count = 0;
    struct process_spec spec = { .argv = words, .in = -1, .group = true, .dies_with_us = SIGTERM };
    int rc;

    while (words[count])
        count++;
    for (size_t i = 0; plan->options && plan->options[i] && i < ELASTIC_JOB_OPTIONS; i++)
        words[count++] = plan->options[i];
    for (size_t i = 0; i < ARRAY_SIZE(worker); i++)
        words[count++] = worker[i];
    path_of(job, "job", state);
    path_of(job, "hosts", hosts);
    path_of(job, "board", board);
    path_of(job, "log", log);
    snprintf(np, sizeof(np), "%" PRIu32, plan->hosts * plan->slots);
    snprintf(mib, sizeof(mib), "%" PRIu32, plan->state_mib);
    snprintf(step, sizeof(step), "%" PRIu32, plan->step_us);
    snprintf(boot, sizeof(boot), "%" PRIu32, plan->boot_ms);
    spec.out = spec.err = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (spec.out < 0)
        return err_set(err, HVD_E_IO, "%s: %s", log, strerror(errno));
    rc = process_spawn(&spec, &job->driver, err);
    close(spec.out);
    return rc;
}

int elastic_job_begin(struct elastic_job *job, const struct elastic_plan *plan, struct hvd_err *err)
{
    char board[PATH_MAX_];
    int rc;

    *job = (struct elastic_job){ .plan = *plan, .folder = "/tmp/bench-XXXXXX" };
    if (!mkdtemp(job->folder)) {
        job->folder[0] = '\0';
        return err_set(err, HVD_E_IO, "/tmp: %s", strerror(errno));
    }
    path_of(job, "board", board);
    rc = board_open(board, &job->board, err);
    if (!rc)
        rc = elastic_job_hosts(job, plan->hosts, err);
    if (!rc)
        rc = start_driver(job, err);
    if (!rc)
        rc = elastic_job_await(job, (size_t)plan->hosts * plan->slots, err);
    return rc;
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *ftw)
{
    (void)stat;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void elastic_job_end(struct elastic_job *job)
{
    int status;

    if (job->driver > 0) {
        kill(job->driver, SIGTERM);
        waitpid(job->driver, &status, 0);
    }
    job->driver = 0;
    board_close(job->board);
    job->board = NULL;
    if (job->folder[0])
        nftw(job->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    job->folder[0] = '\0';
}

int elastic_job_ask(const struct elastic_job *job, const char *verb, struct hvd_err *err)
{
    char state[PATH_MAX_];
    const char *words[] = { BENCH_ELASTIC, verb, "--state-dir", state, NULL };
    struct process_spec spec = { .argv = words, .in = -1, .out = -1, .err = STDERR_FILENO };
    int status = -1;
    pid_t pid;
    int rc;

    path_of(job, "job", state);
    rc = process_spawn(&spec, &pid, err);
    if (rc)
        return rc;
    if (waitpid(pid, &status, 0) != pid || status)
        return err_set(err, HVD_E_STATE, "hvd-elastic %s: has failed; read its lines above", verb);
    return 0;
}

size_t elastic_job_logged(const struct elastic_job *job, const char *text)
{
    char path[PATH_MAX_], line[1024];
    size_t count = 0;
    FILE *file;

    path_of(job, "log", path);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        count += strstr(line, text) != NULL;
    if (file)
        fclose(file);
    return count;
}

int elastic_job_address(const struct elastic_job *job, const char *text, char *address, size_t size,
                        struct hvd_err *err)
{
    char path[PATH_MAX_], line[1024];
    const char *found = NULL;
    FILE *file;

    path_of(job, "log", path);
    file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof(line), file))
        found = strstr(line, text);
    if (file)
        fclose(file);
    if (!found)
        return err_set(err, HVD_E_NOTFOUND, "the driver's log has no line with \"%s\"", text);
    found += strlen(text);
    snprintf(address, size, "%.*s", (int)strcspn(found, "/\n"), found);
    return 0;
}

/* ---- processor time -------------------------------------------------------------------------- */

/* Returns the processor time of a process, in the program and in the kernel. */
static int64_t used_us(pid_t pid)
{
    clockid_t clock;
    struct timespec used;

    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
        return 0;
    return (int64_t)used.tv_sec * TIME_S + used.tv_nsec / 1000;
}

int64_t elastic_job_driver_us(const struct elastic_job *job)
{
    int64_t us = used_us(job->driver);
    char path[PATH_MAX_], line[1024] = "";
    char *at = line, *end;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)job->driver, (int)job->driver);
    file = fopen(path, "re");
    if (!file)
        return us;
    if (!fgets(line, sizeof(line), file))
        line[0] = '\0';
    fclose(file);
    /* a blank stands behind each number; one that the end of the line has cut has none */
    for (long child = strtol(at, &end, 10); end != at && *end == ' ';
         child = strtol(at, &end, 10)) {
        us += used_us((pid_t)child);
        at = end;
    }
    return us;
}

/* ---- rounds -----------------------------------------------------------------------------------
 */

struct board_round *elastic_job_round(const struct elastic_job *job, uint64_t incarnation,
                                      uint64_t number)
{
    return board_round(board_slot(job->board, incarnation), number);
}

/* Have all who are in that round done a step? Then they are those that count. */
static bool is_complete(struct elastic_job *job, uint64_t number)
{
    uint64_t last = job->board->last;
    uint32_t size = 0;

    job->count = 0;
    for (uint64_t i = 1; i <= last && job->count < ELASTIC_JOB_WORKERS; i++) {
        struct board_round *round = elastic_job_round(job, i, number);

        if (round->number != number || !round->step_us)
            continue;
        size = round->size;
        job->incarnations[job->count++] = i;
    }
    return size && job->count == size;
}

static bool is_there(struct elastic_job *job, size_t count)
{
    uint64_t newest = job->board->round;

    for (uint64_t number = job->round + 1; number <= newest; number++) {
        if (is_complete(job, number) && (!count || job->count == count)) {
            job->round = number;
            return true;
        }
    }
    return false;
}

static int say_what_was(const struct elastic_job *job, struct hvd_err *err)
{
    char path[PATH_MAX_], line[256], last[256] = "";
    FILE *file;

    path_of(job, "log", path);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        memcpy(last, line, sizeof(last));
    if (file)
        fclose(file);
    last[strcspn(last, "\n")] = '\0';
    return err_set(err, HVD_E_TIMEOUT,
                   "no such round after round %" PRIu64 "; the driver's last words: %s", job->round,
                   last);
}

int elastic_job_await(struct elastic_job *job, size_t count, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + PATIENCE_US;

    for (;;) {
        uint32_t bell = job->board->bell;

        if (is_there(job, count))
            return 0;
        if (waitpid(job->driver, NULL, WNOHANG))
            job->driver = 0;
        if (!job->driver || clock_now_us() >= deadline_us)
            return say_what_was(job, err);
        board_await(job->board, bell, deadline_us);
    }
}

/* ---- blocks of steps ------------------------------------------------------------------------- */

int elastic_job_blocks(const struct elastic_job *job, uint64_t count, int64_t *ret_us,
                       struct hvd_err *err)
{
    struct board_slot *seat = board_slot(job->board, job->incarnations[0]);
    int64_t deadline_us = clock_now_us() + BLOCKS_PATIENCE_US;
    uint64_t next = seat->blocks, end = next + count;

    for (*ret_us = 0; next < end;) {
        uint32_t bell = job->board->bell;

        if (next < seat->blocks) {
            *ret_us += seat->block_us[next++ % BOARD_BLOCKS];
            continue;
        }
        if (clock_now_us() >= deadline_us)
            return err_set(err, HVD_E_TIMEOUT, "the workers do no steps; choose a smaller state");
        board_await(job->board, bell, deadline_us);
    }
    return 0;
}
