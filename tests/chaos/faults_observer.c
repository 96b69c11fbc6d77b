/*
 * faults_observer.c: an observer (tests/attack/wiretap.c) reads the handshakes of this job on the
 * way, and sends what he has read again on connections of his own, while processes are killed and
 * replaced and then while the job trains. Invariant: the observer is a child outside of the arena,
 * and ends in relent or with this program.
 *
 * Nothing that he sends may get an answer, make a round, or have a host blamed.
 */
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"
#include "tests/chaos/log_follow.h"
#include "tests/chaos/strike.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEARD_BYTES 16384

struct observer {
    pid_t pid; /* 0: none */
    int out;   /* what he prints */
    char heard[HEARD_BYTES];
    size_t length, looked;
};

static const char *observer_not_here(const struct chaos *chaos)
{
    /* on the loopback he would also see, and dial, processes that are none of this job */
    return chaos->arena.plan->where == PLAN_NETWORKS ? NULL
                                                     : "hosts are one machine; --where networks";
}

/* Waits for a line with the text after those that were waited for. */
static bool observer_await(struct observer *observer, const char *text, int64_t until_us)
{
    struct pollfd said = { .fd = observer->out, .events = POLLIN };

    for (;;) {
        char *line = strstr(observer->heard + observer->looked, text);
        int64_t left_us = until_us - clock_now_us();
        ssize_t got;

        if (line && strchr(line, '\n')) {
            observer->looked = (size_t)(strchr(line, '\n') - observer->heard);
            return true;
        }
        if (left_us <= 0 || poll(&said, 1, (int)(left_us / TIME_MS) + 1) <= 0)
            return false;
        got = read(observer->out, observer->heard + observer->length,
                   sizeof(observer->heard) - 1 - observer->length);
        if (got <= 0)
            return false;
        observer->length += (size_t)got;
        observer->heard[observer->length] = '\0';
    }
}

/* The time by which the observer has done what he does at any moment. */
static int64_t observer_deadline_us(const struct chaos *chaos)
{
    return clock_now_us() + chaos->arena.plan->patience_us;
}

static int observer_begin(struct chaos *chaos, struct hvd_err *err)
{
    static const char *const words[] = { CHAOS_WIRETAP, "/dev/null", "replay", "everywhere", NULL };
    static const char *const nothing[] = { NULL };
    struct observer *observer = mem_zalloc(sizeof(*observer));
    struct process_spec spec = {
        .argv = words, .envp = nothing, .in = -1, .err = -1, .dies_with_us = SIGTERM
    };
    int ends[2], rc;

    chaos->own = observer;
    if (!observer)
        return err_set(err, HVD_E_NOMEM, "no memory for an observer");
    observer->out = -1;
    if (pipe2(ends, O_CLOEXEC))
        return err_set(err, HVD_E_LIMIT, "an observer: %s", strerror(errno));
    observer->out = ends[0];
    spec.out = ends[1];
    rc = process_spawn(&spec, &observer->pid, err);
    close(ends[1]);
    if (!rc && !observer_await(observer, "listens", observer_deadline_us(chaos)))
        rc = err_set(err, HVD_E_UNSUPPORTED, "an observer: he cannot listen here");
    return rc;
}

/* The job is whole again: from now on no replay may change anything. */
static int observer_judge(struct chaos *chaos, struct observer *observer, struct hvd_err *err)
{
    int64_t until_us = observer_deadline_us(chaos);
    uint64_t round = chaos->steps.list[chaos->steps.count - 1].round;
    struct log_follow follow;
    char path[ARENA_PATH];
    int rc = log_follow_open(&follow, arena_path(&chaos->arena, "driver.log", path), err);

    if (rc)
        return rc;
    /* forget what was printed until now; of two lines that follow the second is of this time only
     */
    (void)observer_await(observer, "\n\n", clock_now_us() + TIME_MS);
    observer->looked = observer->length;
    for (int i = 0; i < 2 && !rc; i++)
        if (!observer_await(observer, "hung up on", until_us))
            rc = err_set(err, HVD_E_TIMEOUT, "an observer has found too little to replay");
    if (!rc)
        rc = steps_read(&chaos->steps, err);
    if (!rc && chaos->steps.list[chaos->steps.count - 1].round != round)
        rc = err_set(err, HVD_E_MISMATCH,
                     "while an observer replays, round %" PRIu64 " follows round %" PRIu64,
                     chaos->steps.list[chaos->steps.count - 1].round, round);
    while (!rc && log_follow_await(&follow, "blacklist: ", clock_now_us()))
        if (strstr(follow.line, " failed"))
            rc = err_set(err, HVD_E_MISMATCH, "while an observer replays, a host is blamed: %.120s",
                         follow.line);
    log_follow_close(&follow);
    return *chaos->arena.broken_off ? 0 : rc;
}

static int observer_end(struct chaos *chaos, struct hvd_err *err)
{
    struct observer *observer = chaos->own;
    int rc = 0, status = 0;

    if (observer && observer->pid > 0) {
        if (err)
            rc = strike_await_whole(chaos, "while an observer replays", err);
        if (!rc && err)
            rc = observer_judge(chaos, observer, err);
        kill(observer->pid, SIGTERM);
        if (observer_await(observer, "answered", observer_deadline_us(chaos))) {
            const char *said = strstr(observer->heard, " words, ");

            fault_say(chaos, "%.*s", (int)strcspn(said, "\n") - 8, said + 8);
        }
        while (waitpid(observer->pid, &status, 0) < 0 && errno == EINTR)
            continue;
        if (!rc && status)
            rc = err_set(err, HVD_E_MISMATCH,
                         "a replay was answered, or the observer failed: %.100s",
                         observer->heard + observer->looked);
    }
    if (observer && observer->out >= 0)
        close(observer->out);
    mem_free(observer);
    chaos->own = NULL;
    return rc;
}

FAULT(replay, "replay", .names = "{worker}: killed by signal 9",
      .what = "an observer replays what workers and agents have said when they met; one is killed "
              "meanwhile",
      .weight = 1, .missing = observer_not_here, .relent = observer_end)
{
    int rc = observer_begin(chaos, err);

    if (!rc)
        rc = strike_kill(chaos, PROC_WORKER, -1);
    return strike_whole(chaos, rc, observer_end, err);
}

FAULT(replay_driver, "replay-driver", .names = "the driver (pid {driver}) died of signal 9",
      .what = "an observer replays what agents have said to the driver, which is killed meanwhile",
      .cost = FAULT_COSTS_NOTHING, .weight = 1, .missing = observer_not_here,
      .relent = observer_end)
{
    const struct proc_info *driver = proc_scan_pick(&chaos->scan, PROC_DRIVER, -1, &chaos->rng);
    int rc = observer_begin(chaos, err);

    if (!rc && !strike_signal(chaos, driver, SIGKILL))
        rc = HVD_DONE;
    return strike_whole(chaos, rc, observer_end, err);
}
