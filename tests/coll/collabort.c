/*
 * collabort: rounds between processes that are broken off at random moments: members are killed or
 * stopped, or packets are lost. Then the test cancels the other members, as a driver would. All
 * members must return; the survivors must be able to run another round at once, and leave nothing
 * behind. The program prints how long members take to return, by engine and by harm.
 *
 *     collabort [TRIALS] [--seed S] [--trial N] [--networks PATH PATH]
 *
 * --networks: two network namespaces, 10.79.1.2 and 10.79.2.2, which reach each other through the
 * namespace of this program. Packets are lost while that namespace does not forward them.
 */
#include "base/panic.h"
#include "base/text.h"
#include "os/clock.h"
#include "tests/coll/trial.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIALS      35
#define SAMPLES_MAX 20000
#define FORWARD     "/proc/sys/net/ipv4/ip_forward"

struct samples {
    uint32_t us[SAMPLES_MAX];
    size_t count;
};

struct bench {
    uint64_t seed, first, last;
    const char *networks[2]; /* NULL: none */
    struct trial trial;      /* the trial that is being run */
    struct trial_shared *shared;
    struct processes processes;
    int64_t done_us; /* when the harm was done */
    struct samples samples[ENGINE_COUNT][HARM_COUNT];
};

PRINTF_LIKE(2, 3)
/* Prints what is wrong with the trial, and the outcome of each member. Returns false. */
static bool wrong(const struct bench *bench, const char *format, ...)
{
    char text[160];
    va_list args;

    trial_show(&bench->trial, text);
    printf("collabort: %s: ", text);
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    printf("\n");
    for (uint32_t i = 0; i < bench->trial.layout.size; i++) {
        const struct trial_member *member = &bench->shared->members[i];

        printf("  rank %u: operation %" PRIuFAST64 ", of kind %u: %s; %s\n", i,
               atomic_load(&member->acts) + 1, member->operation, err_name(member->code),
               member->wrong);
    }
    printf("again: collabort --seed %" PRIu64 " --trial %" PRIu64 "%s%s%s%s\n", bench->seed,
           bench->trial.number, bench->networks[0] ? " --networks " : "",
           bench->networks[0] ? bench->networks[0] : "", bench->networks[0] ? " " : "",
           bench->networks[0] ? bench->networks[1] : "");
    return false;
}

/* ---- doing the harm --- */

static bool forward(bool on)
{
    int fd = open(FORWARD, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, on ? "1" : "0", 1) == 1;

    if (fd >= 0)
        close(fd);
    return ok;
}

static bool say_to_all(struct bench *bench, char letter)
{
    for (uint32_t i = 0; i < bench->processes.size; i++) {
        if (bench->processes.members[i].pid &&
            !processes_say(bench->processes.members[i].talk, letter))
            return wrong(bench, "rank %u has crashed", i);
    }
    return true;
}

static bool say_to_unhurt(struct bench *bench, char letter)
{
    for (uint32_t i = 0; i < bench->processes.size; i++) {
        if (!trial_hurts(&bench->trial, i) &&
            !processes_say(bench->processes.members[i].talk, letter))
            return wrong(bench, "rank %u has crashed", i);
    }
    return true;
}

/* Waits without sleeping, so that the harm can strike at any moment of an operation. */
static void pass(int64_t us)
{
    int64_t until_us = clock_now_us() + us;

    while (clock_now_us() < until_us) {
    }
}

static bool let_them_work(struct bench *bench)
{
    int64_t until_us = clock_now_us() + TRIAL_PATIENCE_US;

    for (uint32_t i = 0; i < bench->processes.size && bench->trial.harm != HARM_CONNECT; i++) {
        while (!atomic_load(&bench->shared->members[i].acts)) {
            if (clock_now_us() > until_us)
                return wrong(bench, "rank %u does not begin to work", i);
            (void)sched_yield();
        }
    }
    pass(bench->trial.after_us);
    return true;
}

/* Does the trial's harm, and tells the members that must be told. false: that was not possible. */
static bool do_deed(struct bench *bench)
{
    const struct trial *trial = &bench->trial;
    bool stops = trial->harm == HARM_STOP || (trial->harm == HARM_CONNECT && trial->number % 2);

    bench->done_us = clock_now_us();
    for (uint32_t i = 0; i < trial->hurt_count; i++) {
        if (stops)
            (void)kill(bench->processes.members[trial->hurt[i]].pid, SIGSTOP);
        else
            processes_kill(&bench->processes, trial->hurt[i]);
    }
    if (trial->harm == HARM_DROP && !forward(false))
        return wrong(bench, "%s cannot be written", FORWARD);
    if (trial->harm == HARM_DROP) /* waits until nearly all members wait for lost packets */
        pass(trial->after_us * 3);
    if (trial->harm == HARM_CANCEL_ONE)
        return processes_say(bench->processes.members[trial->hurt[0]].talk, 'x');
    return trial->harm == HARM_KILL_SILENT || say_to_unhurt(bench, 'x');
}

/* ---- how the members react --- */

static void add_sample(struct bench *bench, int64_t us)
{
    struct samples *samples = &bench->samples[bench->trial.engine][bench->trial.harm];

    if (samples->count < SAMPLES_MAX)
        samples->us[samples->count++] = us > 0 ? (uint32_t)us : 0;
}

/* When the first member was told to cancel its round; if the trial tells no member so
 * (HARM_KILL_SILENT), when the harm was done. */
static int64_t told_at(const struct bench *bench)
{
    int64_t first_us = INT64_MAX;

    if (bench->trial.harm == HARM_KILL_SILENT)
        return bench->done_us;
    for (uint32_t i = 0; i < bench->processes.size; i++) {
        int64_t told_us = bench->shared->members[i].told_us;

        if (told_us && told_us < first_us)
            first_us = told_us;
    }
    return first_us;
}

/* true: the error of each member names the dead rank. */
static bool all_know_who(const struct bench *bench)
{
    char who[64];

    (void)snprintf(who, sizeof(who), "rank %u (#%u on ", bench->trial.hurt[0],
                   100 + bench->trial.hurt[0]);
    for (uint32_t i = 0; i < bench->processes.size; i++) {
        const struct trial_member *member = &bench->shared->members[i];

        if (!trial_hurts(&bench->trial, i) && !strstr(member->why, who))
            return wrong(bench, "rank %u does not name %s: %s", i, who, member->why);
    }
    return true;
}

/* Waits for all members. A member that has noticed the harm by itself returns before it is told:
 * its time counts as 0. */
static bool all_return(struct bench *bench)
{
    int64_t told_us;

    for (uint32_t i = 0; i < bench->processes.size; i++) {
        if (trial_hurts(&bench->trial, i))
            continue;
        if (processes_hear(bench->processes.members[i].talk, TRIAL_PATIENCE_US) != 'r')
            return wrong(bench, "rank %u has not returned", i);
    }
    told_us = told_at(bench);
    for (uint32_t i = 0; i < bench->processes.size; i++) {
        if (!trial_hurts(&bench->trial, i))
            add_sample(bench, bench->shared->members[i].returned_us - told_us);
    }
    return bench->trial.harm != HARM_KILL_SILENT || all_know_who(bench);
}

/* The members that can still reach each other run another round. */
static bool all_go_on(struct bench *bench)
{
    const struct trial *trial = &bench->trial;

    for (uint32_t i = 0; i < bench->processes.size; i++) {
        bench->shared->members[i].team = trial_hurts(trial, i)      ? UINT32_MAX
                                         : trial->harm == HARM_DROP ? trial->layout.host[i]
                                                                    : 0;
    }
    return say_to_unhurt(bench, 'n');
}

static bool ends(struct bench *bench, uint32_t rank)
{
    int status;

    if (processes_hear(bench->processes.members[rank].talk, TRIAL_PATIENCE_US) != 'd')
        return wrong(bench, "rank %u has not come to its end", rank);
    status = processes_reap(&bench->processes, rank, TRIAL_PATIENCE_US);
    return !status || wrong(bench, "rank %u ends with status %d", rank, status);
}

/* A member that was stopped continues at the end: the others have told it, or are gone. If it still
 * waits for a member to connect, it must be told that the round was revoked. */
static bool ends_late(struct bench *bench, uint32_t rank)
{
    struct processes_member *member = &bench->processes.members[rank];

    (void)kill(member->pid, SIGCONT);
    if (bench->trial.harm == HARM_CONNECT && !processes_say(member->talk, 'x'))
        return wrong(bench, "rank %u, which was stopped, has crashed", rank);
    if (processes_hear(member->talk, TRIAL_PATIENCE_US) != 'r')
        return wrong(bench, "rank %u, which was stopped, has not returned", rank);
    return processes_say(member->talk, 'q') && ends(bench, rank);
}

static bool all_end(struct bench *bench)
{
    for (uint32_t i = 0; i < bench->processes.size; i++) {
        if (!trial_hurts(&bench->trial, i) && !ends(bench, i))
            return false;
    }
    for (uint32_t i = 0; i < bench->processes.size; i++) {
        if (bench->processes.members[i].pid && !ends_late(bench, i))
            return false;
    }
    return true;
}

/* Runs a trial from the fork to the end of the processes. false: a member was wrong. */
static bool run_trial(struct bench *bench)
{
    struct trial_seat seat = { &bench->trial, bench->shared };
    bool ok;

    ASSERT(bench->shared);
    memset(bench->shared, 0, sizeof(*bench->shared));
    ok = processes_fork(&bench->processes, bench->trial.layout.size, true, trial_member, &seat);
    for (uint32_t i = 0; i < bench->processes.size && ok; i++) {
        if (processes_hear(bench->processes.members[i].talk, TRIAL_PATIENCE_US) != 'c')
            ok = wrong(bench, "rank %u has no engine", i);
    }
    ok = ok && say_to_all(bench, 'g') && let_them_work(bench) && do_deed(bench) &&
         all_return(bench) && all_go_on(bench) && all_end(bench);
    processes_end(&bench->processes);
    if (bench->networks[0])
        (void)forward(true);
    return ok;
}

/* ---- summary --- */

static int by_value(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static double ms_at(const struct samples *samples, unsigned percent)
{
    size_t at = (samples->count - 1) * percent / 100;

    return samples->us[at] / 1000.0;
}

static void show(struct bench *bench)
{
    printf("%-16s %-26s %9s %9s %9s %9s %9s  (ms to return)\n", "engine", "harm", "members",
           "median", "p90", "p99", "max");
    for (size_t i = 0; i < ENGINE_COUNT; i++) {
        for (size_t k = 0; k < HARM_COUNT; k++) {
            struct samples *samples = &bench->samples[i][k];

            if (!samples->count)
                continue;
            qsort(samples->us, samples->count, sizeof(samples->us[0]), by_value);
            printf("%-16s %-26s %9zu %9.2f %9.2f %9.2f %9.2f\n", trial_engines[i], trial_harms[k],
                   samples->count, ms_at(samples, 50), ms_at(samples, 90), ms_at(samples, 99),
                   ms_at(samples, 100));
        }
    }
}

static bool number_of(const char *text, uint64_t *ret_number)
{
    const struct span span = { text, strlen(text) };

    return !text_parse_u64(span, 0, UINT64_MAX / 2, "a number", ret_number, NULL);
}

static bool read_words(struct bench *bench, int argc, char **argv)
{
    uint64_t trials = TRIALS;

    bench->last = trials - 1;
    for (int i = 1; i < argc; i++) {
        int left = argc - i - 1;

        if (!strcmp(argv[i], "--seed") && left >= 1) {
            if (!number_of(argv[++i], &bench->seed))
                return false;
        } else if (!strcmp(argv[i], "--trial") && left >= 1) {
            if (!number_of(argv[++i], &bench->first))
                return false;
            bench->last = bench->first;
        } else if (!strcmp(argv[i], "--networks") && left >= 2) {
            bench->networks[0] = argv[++i];
            bench->networks[1] = argv[++i];
        } else {
            if (!number_of(argv[i], &trials) || !trials)
                return false;
            bench->last = trials - 1;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct bench bench = { .seed = 1 };
    uint64_t number;

    if (!read_words(&bench, argc, argv)) {
        printf("usage: collabort [TRIALS] [--seed S] [--trial N] [--networks PATH PATH]\n");
        return 2;
    }
    bench.shared = processes_share(sizeof(*bench.shared));
    for (number = bench.first; number <= bench.last; number++) {
        trial_make(&bench.trial, bench.seed, number, bench.networks[0] ? bench.networks : NULL);
        if (!run_trial(&bench))
            break;
    }
    show(&bench);
    if (number > bench.last)
        printf("collabort: %" PRIu64 " trials of seed %" PRIu64 ": all have returned\n",
               number - bench.first, bench.seed);
    processes_unshare(bench.shared, sizeof(*bench.shared));
    return number > bench.last ? 0 : 1;
}
