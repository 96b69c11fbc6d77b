#include "bench/elastic_play.h"

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
#include <unistd.h>

#define PATIENCE_US (120 * TIME_S)
#define PATH_MAX_   128
#define WORDS_MAX   40

static void path_of(const struct elastic_play *play, const char *name, char path[PATH_MAX_])
{
    snprintf(path, PATH_MAX_, "%s/%s", play->folder, name);
}

/* The driver never sees half of it. */
int elastic_play_hosts(struct elastic_play *play, uint32_t hosts, struct hvd_err *err)
{
    char path[PATH_MAX_], fresh[PATH_MAX_];
    FILE *file;

    path_of(play, "hosts", path);
    path_of(play, "hosts.new", fresh);
    file = fopen(fresh, "we");
    if (!file)
        return err_set(err, HVD_E_IO, "%s: %s", fresh, strerror(errno));
    for (uint32_t i = 1; i <= hosts; i++)
        fprintf(file, "127.0.0.%" PRIu32 ":%" PRIu32 "\n", i, play->plan.slots);
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

static int start_driver(struct elastic_play *play, struct hvd_err *err)
{
    const struct elastic_plan *plan = &play->plan;
    char state[PATH_MAX_], hosts[PATH_MAX_], board[PATH_MAX_], log[PATH_MAX_];
    char np[16], mib[16], step[16], boot[16];
    const char *words[] = { BENCH_ELASTIC,
                            "--state-dir",
                            state,
                            "-np",
                            np,
                            "--min-np",
                            "1",
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
                            "2s",
                            "--",
                            BENCH_WORKER,
                            board,
                            mib,
                            step,
                            boot,
                            plan->mode,
                            NULL };
    struct process_spec spec = { .argv = words, .in = -1, .group = true, .dies_with_us = SIGTERM };
    int rc;

    path_of(play, "job", state);
    path_of(play, "hosts", hosts);
    path_of(play, "board", board);
    path_of(play, "log", log);
    snprintf(np, sizeof(np), "%" PRIu32, plan->hosts * plan->slots);
    snprintf(mib, sizeof(mib), "%" PRIu32, plan->state_mib);
    snprintf(step, sizeof(step), "%" PRIu32, plan->step_us);
    snprintf(boot, sizeof(boot), "%" PRIu32, plan->boot_ms);
    spec.out = spec.err = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (spec.out < 0)
        return err_set(err, HVD_E_IO, "%s: %s", log, strerror(errno));
    rc = process_spawn(&spec, &play->driver, err);
    close(spec.out);
    return rc;
}

int elastic_play_begin(struct elastic_play *play, const struct elastic_plan *plan,
                       struct hvd_err *err)
{
    char board[PATH_MAX_];
    int rc;

    *play = (struct elastic_play){ .plan = *plan, .folder = "/tmp/bench-XXXXXX" };
    if (!mkdtemp(play->folder)) {
        play->folder[0] = '\0';
        return err_set(err, HVD_E_IO, "/tmp: %s", strerror(errno));
    }
    path_of(play, "board", board);
    rc = board_open(board, &play->board, err);
    if (!rc)
        rc = elastic_play_hosts(play, plan->hosts, err);
    if (!rc)
        rc = start_driver(play, err);
    if (!rc)
        rc = elastic_play_await(play, (size_t)plan->hosts * plan->slots, err);
    return rc;
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *ftw)
{
    (void)stat;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void elastic_play_end(struct elastic_play *play)
{
    int status;

    if (play->driver > 0) {
        kill(play->driver, SIGTERM);
        waitpid(play->driver, &status, 0);
    }
    play->driver = 0;
    board_close(play->board);
    play->board = NULL;
    if (play->folder[0])
        nftw(play->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    play->folder[0] = '\0';
}

/* ---- rounds -----------------------------------------------------------------------------------
 */

struct board_round *elastic_play_round(const struct elastic_play *play, uint64_t incarnation,
                                       uint64_t number)
{
    return board_round(board_seat(play->board, incarnation), number);
}

/* Have all who are in that round done a step? Then they are those that count. */
static bool is_complete(struct elastic_play *play, uint64_t number)
{
    uint64_t last = play->board->last;
    uint32_t size = 0;

    play->count = 0;
    for (uint64_t i = 1; i <= last && play->count < ELASTIC_PLAY_WORKERS; i++) {
        struct board_round *round = elastic_play_round(play, i, number);

        if (round->number != number || !round->step_us)
            continue;
        size = round->size;
        play->incarnations[play->count++] = i;
    }
    return size && play->count == size;
}

static bool is_there(struct elastic_play *play, size_t count)
{
    uint64_t newest = play->board->round;

    for (uint64_t number = play->round + 1; number <= newest; number++) {
        if (is_complete(play, number) && (!count || play->count == count)) {
            play->round = number;
            return true;
        }
    }
    return false;
}

static int say_what_was(const struct elastic_play *play, struct hvd_err *err)
{
    char path[PATH_MAX_], line[256], last[256] = "";
    FILE *file;

    path_of(play, "log", path);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        memcpy(last, line, sizeof(last));
    if (file)
        fclose(file);
    last[strcspn(last, "\n")] = '\0';
    return err_set(err, HVD_E_TIMEOUT,
                   "no such round after round %" PRIu64 "; the driver's last words: %s",
                   play->round, last);
}

int elastic_play_await(struct elastic_play *play, size_t count, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + PATIENCE_US;

    for (;;) {
        uint32_t bell = play->board->bell;

        if (is_there(play, count))
            return 0;
        if (waitpid(play->driver, NULL, WNOHANG))
            play->driver = 0;
        if (!play->driver || clock_now_us() >= deadline_us)
            return say_what_was(play, err);
        board_await(play->board, bell, deadline_us);
    }
}
