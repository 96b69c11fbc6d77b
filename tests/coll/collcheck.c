/*
 * collcheck: random collectives between processes that pretend to be on several hosts, compared
 * with a plain reference. The results must be the same bits on all members, and with fixed_order
 * also on other hosts. The first wrong result ends the program, and it prints the options that
 * repeat the case.
 *
 *     collcheck [CASES] [--seed S] [--case A[-B]] [--gpu host|nccl]
 *     collcheck --huge
 *
 * --gpu: the buffers are in the memory of stand-in devices (tests/standin), one for each process,
 * and pass through the host, or go by the stand-in of NCCL.
 */
#include "base/panic.h"
#include "base/text.h"
#include "base/time.h"
#include "collectives/circle.h"
#include "os/clock.h"
#include "tests/coll/huge.h"
#include "tests/coll/plan_run.h"

#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define CASES   (34 * BATCH_CASES)
#define LOOK_MS 1000
/* no member has finished a case for this long: the program hangs */
#define HANGS_US   (40 * TIME_S)
#define CONNECT_US (60 * TIME_S)
#define PROGRESS_S 10

struct shared_member {
    char contact[PROCESSES_CONTACT_MAX];
    char device[PROCESSES_CONTACT_MAX];
    atomic_uint_fast64_t done; /* cases done */
    uint64_t sums[BATCH_CASES][BATCH_GROUPS + 1];
    char wrong[PLAN_RUN_WRONG_MAX];
};

struct shared {
    struct plan_run_shared plan_run;
    struct shared_member members[PROCESSES_MAX];
};

struct check {
    uint64_t seed, first, last; /* numbers of cases; last is included */
    enum device_buffers_way way;
    struct shared *shared;
    struct batch batch;                                          /* the batch that is being run */
    uint64_t twin[PROCESSES_MAX][BATCH_CASES][BATCH_GROUPS + 1]; /* checksums of the twin before */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t greatest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- a member --- */

static const uint8_t secret[LIMIT_ROUND_SECRET_BYTES] = "the secret of each round here";

static void roster_of(const struct check *check, uint32_t rank,
                      struct coll_peer peers[PROCESSES_MAX], struct coll_roster *ret_roster)
{
    static const char *const hosts[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i",
                                         "j", "k", "l", "m", "n", "o", "p", "q" };
    const struct batch *batch = &check->batch;

    for (uint32_t i = 0; i < batch->layout.size; i++)
        peers[i] = (struct coll_peer){ .incarnation = 100 + i,
                                       .host = hosts[batch->layout.host[i]],
                                       .contact = check->shared->members[i].contact,
                                       .device = check->way == DEVICE_BY_NCCL
                                                     ? check->shared->members[i].device
                                                     : NULL };
    *ret_roster = (struct coll_roster){ .round = 1 + batch->number,
                                        .rank = rank,
                                        .size = batch->layout.size,
                                        .peers = peers,
                                        .secret = secret,
                                        .secret_length = sizeof(secret),
                                        .groups = batch->groups + 1,
                                        .group_count = batch->opened ? 0 : BATCH_GROUPS };
}

/* Opens the groups of the batch that this rank is in, without the other ranks, and each rank in
 * another order. */
static int open_apart(const struct batch *batch, uint32_t rank, struct coll *coll,
                      size_t *ret_groups, struct hvd_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < BATCH_GROUPS && !rc; i++) {
        size_t g = 1 + (i + rank) % BATCH_GROUPS;
        const struct coll_ranks *ranks = &batch->groups[g];
        bool member = false;

        for (uint32_t k = 0; k < ranks->count; k++)
            member |= ranks->items[k] == rank;
        ret_groups[g] = coll_group_count(coll);
        if (member)
            rc = coll_open_group(coll, ranks, g, err);
    }
    return rc;
}

/* Opens the groups of the batch together. They get the numbers that they would have in the roster.
 */
static int open_groups(const struct batch *batch, uint32_t rank, struct coll *coll,
                       struct hvd_err *err)
{
    int rc = 0;

    for (size_t g = 1; g <= BATCH_GROUPS && !rc; g++) {
        const struct coll_ranks *ranks = &batch->groups[g];
        struct coll_opening opening = { .most = ranks->count, .hash = g };
        const struct coll_call open = { .kind = COLL_OPEN, .opening = &opening };

        for (uint32_t i = 0; i < ranks->count; i++) {
            opening.hash = numbers_mix(opening.hash, ranks->items[i]);
            if (ranks->items[i] == rank)
                opening.ranks = *ranks;
        }
        rc = coll_run(coll, &open, err);
    }
    return rc;
}

/* Runs the cases of the batch on this member, and shares the checksums of the results. */
static int run_member(const struct check *check, uint32_t rank, struct coll *coll,
                      const size_t *groups, struct device_buffers *device, char *wrong)
{
    uint64_t first = greatest(check->batch.number * BATCH_CASES, check->first);
    uint64_t last = least(check->batch.number * BATCH_CASES + BATCH_CASES - 1, check->last);
    struct shared_member *self = &check->shared->members[rank];
    struct plan_run run = { .coll = coll,
                            .device = check->way == DEVICE_NONE ? NULL : device,
                            .batch = &check->batch,
                            .shared = &check->shared->plan_run,
                            .rank = rank };
    struct plan plan;
    int rc = 0;

    memcpy(run.groups, groups, sizeof(run.groups));
    for (uint64_t number = first; number <= last && !rc; number++) {
        plan_make(&check->batch, number, &plan);
        run.plan = &plan;
        run.judges = rank == number % check->batch.layout.size;
        rc = plan_run(&run);
        memcpy(self->sums[number % BATCH_CASES], run.sums, sizeof(run.sums));
        atomic_fetch_add(&self->done, 1);
    }
    memcpy(wrong, run.wrong, PLAN_RUN_WRONG_MAX);
    return rc;
}

static size_t open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;

    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* Connects the round (letters c and g), runs the batch, and says bye. 0, or a code. */
static int be_in_round(struct check *check, uint32_t rank, int talk, struct coll_engine *engine,
                       struct device_buffers *device)
{
    struct shared_member *self = &check->shared->members[rank];
    struct hvd_err err = { .text = "" };
    struct coll_peer peers[PROCESSES_MAX];
    struct coll_roster roster;
    size_t groups[BATCH_GROUPS + 1];
    struct coll *coll = NULL;
    int rc;

    for (size_t i = 0; i <= BATCH_GROUPS; i++)
        groups[i] = i;
    (void)snprintf(self->contact, sizeof(self->contact), "%s", coll_engine_contact(engine));
    if (check->way == DEVICE_BY_NCCL && !check->batch.fixed_order) {
        rc = coll_engine_use_device(engine, device->device, &err);
        ASSERT(!rc && coll_engine_device_text(engine));
        (void)snprintf(self->device, sizeof(self->device), "%s", coll_engine_device_text(engine));
    }
    if (!processes_say(talk, 'c') || processes_hear(talk, HANGS_US) != 'g')
        return 1;
    roster_of(check, rank, peers, &roster);
    rc = coll_create(engine, &roster, &coll, &err);
    if (!rc)
        rc = coll_connect(coll, CONNECT_US, &err);
    if (!rc)
        rc = check->batch.apart    ? open_apart(&check->batch, rank, coll, groups, &err)
             : check->batch.opened ? open_groups(&check->batch, rank, coll, &err)
                                   : 0;
    if (rc)
        (void)snprintf(self->wrong, sizeof(self->wrong), "rank %u does not connect: %s", rank,
                       err.text);
    if (!rc)
        coll_await_device(coll, CONNECT_US);
    if (!rc)
        rc = run_member(check, rank, coll, groups, device, self->wrong);
    if (!rc)
        coll_bye(coll);
    coll_free(coll);
    return rc;
}

/* A member's process: opens the engine, runs the batch, and checks that no file is left open. */
static int be_member(uint32_t rank, int talk, void *arg)
{
    struct check *check = arg;
    struct shared_member *self = &check->shared->members[rank];
    const struct coll_options options = { .host = "127.0.0.1",
                                          .carrier = check->batch.carrier,
                                          .flat = check->batch.flat,
                                          .fixed_order = check->batch.fixed_order,
                                          .unfused = check->batch.key % 4 == 0,
                                          .fusion_bytes = check->batch.fusion_bytes,
                                          .gpu = check->way == DEVICE_BY_HOST ? COLL_GPU_CPU
                                                                              : COLL_GPU_AUTO };
    struct coll_engine *engine = NULL;
    struct hvd_err err = { .text = "" };
    struct device_buffers device;
    size_t before, after;
    int rc;

    device_buffers_open(&device, check->way, rank);
    before = open_files();
    rc = coll_engine_open(&options, &engine, &err);
    if (rc)
        (void)snprintf(self->wrong, sizeof(self->wrong), "rank %u has no engine: %s", rank,
                       err.text);
    if (!rc)
        rc = be_in_round(check, rank, talk, engine, &device);
    coll_engine_close(engine);
    after = open_files();
    /* NCCL keeps an id whose members did not all come: that of a group whose first call was its
     * last */
    if (!rc && after != before && check->way != DEVICE_BY_NCCL) {
        rc = 1;
        (void)snprintf(self->wrong, sizeof(self->wrong), "rank %u has %zu files open, not %zu",
                       rank, after, before);
    }
    (void)processes_say(talk, rc ? 'w' : 'd');
    return 0;
}

/* ---- the test ---- */

/* Prints the report of the first member that has found an error; other members only see that it has
 * left. */
static void say_wrong(const struct check *check, const char *what)
{
    const struct shared_member *found = NULL, *members = check->shared->members;
    uint64_t first = greatest(check->batch.number * BATCH_CASES, check->first), number = 0;

    for (uint32_t i = 0; i < check->batch.layout.size; i++) {
        if (!members[i].wrong[0])
            continue;
        if (!found || members[i].done < found->done ||
            (strstr(found->wrong, "HVD_E_") && !strstr(members[i].wrong, "HVD_E_")))
            found = &members[i];
    }
    if (found) {
        number = first + (found->done ? found->done - 1 : 0);
        printf("collcheck: %s\n", found->wrong);
    } else {
        printf("collcheck: %s, in batch %" PRIu64 "\n", what, check->batch.number);
        number = first;
    }
    for (uint32_t i = 0; i < check->batch.layout.size; i++)
        printf("  rank %u has done %" PRIuFAST64 "%s%s\n", i, members[i].done,
               members[i].wrong[0] && &members[i] != found ? ": " : "",
               &members[i] != found ? members[i].wrong : "");
    printf("again: collcheck --seed %" PRIu64 " --case %" PRIu64
           "\n   or: collcheck --seed %" PRIu64 " --case %" PRIu64 "-%" PRIu64 "\n",
           check->seed, number, check->seed, first,
           check->batch.number * BATCH_CASES + BATCH_CASES - 1);
}

static uint64_t done_by_all(const struct check *check)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < check->batch.layout.size; i++)
        sum += atomic_load(&check->shared->members[i].done);
    return sum;
}

/* Waits until each member has sent this letter. */
static bool hear_all(struct check *check, struct processes *processes, char letter)
{
    int64_t until_us = clock_now_us() + HANGS_US;
    struct pollfd lines[PROCESSES_MAX];
    uint64_t done = 0;
    uint32_t left = processes->size;

    for (uint32_t i = 0; i < processes->size; i++)
        lines[i] = (struct pollfd){ .fd = processes->members[i].talk, .events = POLLIN };
    while (left) {
        if (done_by_all(check) != done)
            until_us = clock_now_us() + HANGS_US;
        done = done_by_all(check);
        if (clock_now_us() > until_us) {
            say_wrong(check, "the program hangs");
            return false;
        }
        (void)poll(lines, processes->size, LOOK_MS);
        for (uint32_t i = 0; i < processes->size; i++) {
            char said;

            if (lines[i].fd < 0 || !lines[i].revents)
                continue;
            said = processes_hear(lines[i].fd, 0);
            if (said != letter) {
                say_wrong(check, said ? "something is wrong" : "a member has crashed");
                return false;
            }
            lines[i].fd = -1;
            left--;
        }
    }
    return true;
}

static bool differs(const struct check *check, uint64_t number, uint32_t rank, const char *from)
{
    char text[PLAN_TEXT_MAX];
    struct plan plan;

    plan_make(&check->batch, number, &plan);
    plan_show(&plan, &check->batch, text);
    printf("collcheck: %s\n  rank %u has other bits than %s\nagain: collcheck --seed %" PRIu64
           " --case %" PRIu64 "\n",
           text, rank, from, check->seed, number);
    return false;
}

/* Compares the checksums of all members of each group, and with those of the twin. */
static bool compare(struct check *check, uint64_t number, bool twin)
{
    const struct shared_member *members = check->shared->members;
    size_t at = number % BATCH_CASES;
    struct plan plan;

    plan_make(&check->batch, number, &plan);
    for (size_t g = 0; g <= BATCH_GROUPS; g++) {
        const struct coll_ranks *ranks = &check->batch.groups[g];

        for (uint32_t i = 0; i < ranks->count; i++) {
            uint32_t rank = ranks->items[i];
            uint64_t sum = members[rank].sums[at][g];

            if (plan_is_equal_on_all(&plan) && sum != members[ranks->items[0]].sums[at][g])
                return differs(check, number, rank, "the first of its group");
            if (twin && plan.kind != COLL_JOIN && sum != check->twin[rank][at][g])
                return differs(check, number, rank, "on other hosts");
            check->twin[rank][at][g] = sum;
        }
    }
    return true;
}

/* Runs a batch in new processes, and compares the checksums. false: a result was wrong. */
static bool run_batch(struct check *check, uint64_t number, bool twin)
{
    struct processes processes;
    bool ok;

    ASSERT(check->shared);
    memset(check->shared, 0, sizeof(*check->shared));
    batch_make(&check->batch, check->seed, number);
    ok = processes_fork(&processes, check->batch.layout.size, false, be_member, check);
    if (!ok)
        printf("collcheck: no process can be had\n");
    ok = ok && hear_all(check, &processes, 'c');
    for (uint32_t i = 0; i < processes.size && ok; i++)
        ok = processes_say(processes.members[i].talk, 'g');
    ok = ok && hear_all(check, &processes, 'd');
    processes_end(&processes);
    for (uint64_t i = 0; i < BATCH_CASES && ok; i++) {
        uint64_t one = number * BATCH_CASES + i;

        if (one >= check->first && one <= check->last)
            ok = compare(check, one, twin);
    }
    return ok;
}

/* Runs a batch; a second twin alone needs its first twin before it. */
static bool run_twin(struct check *check, uint64_t number)
{
    struct check other = *check;
    bool ok;

    other.first = greatest(check->first, number * BATCH_CASES) - BATCH_CASES;
    other.last = least(check->last, number * BATCH_CASES + BATCH_CASES - 1) - BATCH_CASES;
    ok = run_batch(&other, number - 1, false);
    memcpy(check->twin, other.twin, sizeof(other.twin));
    return ok;
}

static int run_all(struct check *check)
{
    int64_t begun_us = clock_now_us(), said_us = begun_us;

    for (uint64_t number = check->first / BATCH_CASES; number <= check->last / BATCH_CASES;
         number++) {
        bool twin;

        batch_make(&check->batch, check->seed, number);
        twin = batch_is_second_twin(&check->batch);
        if (twin && check->first > (number - 1) * BATCH_CASES && !run_twin(check, number))
            return 1;
        if (!run_batch(check, number, twin))
            return 1;
        if (clock_now_us() - said_us > PROGRESS_S * TIME_S) {
            said_us = clock_now_us();
            printf("%" PRIu64 " of %" PRIu64 "\n", number * BATCH_CASES, check->last + 1);
            (void)fflush(stdout);
        }
    }
    printf("collcheck: cases %" PRIu64 " to %" PRIu64 " of seed %" PRIu64 " in %.1f s: all right\n",
           check->first, check->last, check->seed,
           (double)(clock_now_us() - begun_us) / (double)TIME_S);
    return 0;
}

/* ---- options --- */

static bool number_of(struct span span, uint64_t *ret_number)
{
    struct hvd_err err;

    if (!text_parse_u64(span, 0, UINT64_MAX / 2, "a number", ret_number, &err))
        return true;
    printf("collcheck: %s\n", err.text);
    return false;
}

/* Reads a range of cases: "7" or "7-9". */
static bool range_of(const char *text, struct check *check)
{
    struct span rest = { text, strlen(text) }, part;

    if (!span_next(&rest, '-', &part) || !number_of(part, &check->first))
        return false;
    check->last = check->first;
    return !span_next(&rest, '-', &part) || number_of(part, &check->last);
}

static bool read_words(struct check *check, int argc, char **argv)
{
    uint64_t cases = CASES;

    check->last = cases - 1;
    for (int i = 1; i < argc; i++) {
        const struct span word = { argv[i], strlen(argv[i]) };
        bool has_value = i + 1 < argc;

        if (span_is(word, "--seed") && has_value) {
            if (!number_of((struct span){ argv[i + 1], strlen(argv[i + 1]) }, &check->seed))
                return false;
            i++;
        } else if (span_is(word, "--gpu") && has_value) {
            check->way = strcmp(argv[++i], "nccl") ? DEVICE_BY_HOST : DEVICE_BY_NCCL;
        } else if (span_is(word, "--case") && has_value) {
            if (!range_of(argv[++i], check))
                return false;
        } else {
            if (!number_of(word, &cases) || !cases)
                return false;
            check->last = cases - 1;
        }
    }
    return check->first <= check->last;
}

int main(int argc, char **argv)
{
    static struct check check = { .seed = 1 };
    int code;

    if (argc == 2 && !strcmp(argv[1], "--huge"))
        return huge_run();
    if (!read_words(&check, argc, argv)) {
        printf("usage: collcheck [CASES] [--seed S] [--case A[-B]] [--gpu host|nccl] | --huge\n");
        return 2;
    }
    check.shared = processes_share(sizeof(*check.shared));
    code = run_all(&check);
    processes_unshare(check.shared, sizeof(*check.shared));
    return code;
}
