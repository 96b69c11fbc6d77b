/*
 * member.c: a member of a trial: it runs operations until the round is broken off, then a few more
 * in a smaller round.
 */
#include "base/mem.h"
#include "base/rng.h"
#include "collectives/circle.h"
#include "collectives/shm/pool.h"
#include "os/clock.h"
#include "os/thread.h"
#include "tests/coll/numbers.h"
#include "tests/coll/trial.h"
#include "tests/lib/gloo_here.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NUMBERS   ((size_t)512 * 1024) /* of type float32, in each buffer */
#define ROUND     7
#define LAST_ACTS 6 /* operations of the second round */

enum { BY_ALL, BY_REST, BY_PAIR, WAYS }; /* the members of an operation */

struct self {
    const struct trial *trial;
    struct trial_shared *shared;
    struct trial_member *seen;
    uint32_t rank;
    int talk;
    struct coll_engine *engine;
    struct coll *coll;
    size_t groups[WAYS]; /* the groups that this member has opened, and their sizes */
    uint32_t sizes[WAYS];
    float *in, *out;
    size_t to[PROCESSES_MAX], from[PROCESSES_MAX]; /* counts of the ragged operation in progress */
    struct coll_received received;
    char last_word; /* the last letter that obey has received, except x */
};

PRINTF_LIKE(2, 3)
static int wrong(struct self *self, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (!self->seen->wrong[0])
        (void)vsnprintf(self->seen->wrong, sizeof(self->seen->wrong), format, args);
    va_end(args);
    return 1;
}

/* ---- engine, buffers and connections --- */

struct held {
    size_t files, memories;
};

static size_t count_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;

    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

static size_t count_memories(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    size_t count = 0;
    char line[512];

    while (maps && fgets(line, sizeof(line), maps))
        count += strstr(line, "memfd:") != NULL;
    if (maps)
        (void)fclose(maps);
    return count;
}

static struct held look_at_held(void)
{
    return (struct held){ count_files(), count_memories() };
}

/* ---- operations until the round is broken off --- */

/* In every third trial members also work in groups that they have opened alone: the ranks with the
 * same rest, and neighbours. */
static int open_apart(struct self *self, struct hvd_err *err)
{
    uint32_t ranks[PROCESSES_MAX], all = self->trial->layout.size;
    int rc = 0;

    for (uint32_t way = 1; way < WAYS && !rc; way++) {
        struct coll_ranks list = { ranks, 0 };

        for (uint32_t i = 0; i < all; i++) {
            if (way == BY_REST ? i % 2 == self->rank % 2 : i / 2 == self->rank / 2)
                ranks[list.count++] = i;
        }
        self->sizes[way] = list.count;
        self->groups[way] = coll_group_count(self->coll);
        rc = coll_open_group(self->coll, &list, way, err);
    }
    return rc;
}

static struct coll_call random_call(struct self *self, struct rng *rng)
{
    static const size_t counts[] = { 1, 100, 3000, 40000, NUMBERS };
    static const enum coll_kind kinds[] = { COLL_ALLREDUCE,        COLL_BROADCAST,
                                            COLL_ALLGATHER,        COLL_REDUCESCATTER,
                                            COLL_ALLTOALL,         COLL_BARRIER,
                                            COLL_ALLGATHER_RAGGED, COLL_ALLTOALL_RAGGED };
    struct coll_call call = { .type = HVD_FLOAT32, .in = self->in, .out = self->out };
    uint32_t way = self->trial->number % 3 ? BY_ALL : (uint32_t)rng_below(rng, WAYS);
    uint32_t size = way ? self->sizes[way] : self->trial->layout.size;

    call.group = way ? self->groups[way] : 0;
    call.kind = kinds[rng_below(rng, ARRAY_SIZE(kinds))];
    call.count = counts[rng_below(rng, ARRAY_SIZE(counts))];
    /* groups differ in size, and each member takes as many random numbers */
    call.root = (uint32_t)rng_below(rng, 1024) % size;
    if (call.kind == COLL_ALLGATHER || call.kind == COLL_ALLTOALL ||
        call.kind == COLL_REDUCESCATTER)
        call.count /= size;
    if (call.kind == COLL_BARRIER)
        call.count = 0;
    if (coll_kind_is_ragged(call.kind)) { /* each member gives as much as its rank says */
        call.count = call.count / size / (self->rank + 1);
        for (uint32_t i = 0; i < size; i++)
            self->to[i] = i % 2 ? call.count : 0;
        self->received = (struct coll_received){ .counts = self->from };
        call.received = &self->received;
        call.counts = call.kind == COLL_ALLTOALL_RAGGED ? self->to : NULL;
    }
    return call;
}

/* Makes random calls until the round is broken off. Returns the code of the last call. */
static int work(struct self *self, struct hvd_err *err)
{
    struct rng rng;
    int rc = self->trial->number % 3 ? 0 : open_apart(self, err);

    rng_seed(&rng, numbers_mix(self->trial->seed, self->trial->number));
    while (!rc) {
        const struct coll_call call = random_call(self, &rng);

        self->seen->operation = (uint32_t)call.kind;
        rc = coll_run(self->coll, &call, err);
        if (!rc && call.received)
            pool_free(self->received.data);
        if (!rc)
            atomic_fetch_add(&self->seen->acts, 1);
    }
    return rc;
}

/* A thread: waits for the letter x and cancels; then waits for the next letter. */
static void *obey(void *arg)
{
    struct self *self = arg;
    char word = processes_hear(self->talk, TRIAL_PATIENCE_US);

    if (word == 'x') {
        self->seen->told_us = clock_now_us();
        coll_cancel(self->coll);
        word = processes_hear(self->talk, TRIAL_PATIENCE_US);
    }
    self->last_word = word;
    return NULL;
}

/* ---- rounds ---- */

static const char *address_of(const struct trial *trial, uint32_t rank)
{
    static const char *const addresses[] = { "10.79.1.2", "10.79.2.2" };

    return trial->networks ? addresses[trial->layout.host[rank]] : "127.0.0.1";
}

/* Makes a round of the members with this member's team number, or of all members. */
static int make_round(struct self *self, uint64_t round, bool all, struct hvd_err *err)
{
    static const char *const hosts[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    const struct trial *trial = self->trial;
    static const uint8_t secret[LIMIT_ROUND_SECRET_BYTES] = "the secret of each round here";
    struct coll_roster roster = { .round = round,
                                  .secret = secret,
                                  .secret_length = sizeof(secret) };
    struct coll_peer peers[PROCESSES_MAX];

    for (uint32_t i = 0; i < trial->layout.size; i++) {
        const struct trial_member *member = &self->shared->members[i];

        if (!all && member->team != self->seen->team)
            continue;
        if (i == self->rank)
            roster.rank = roster.size;
        peers[roster.size++] = (struct coll_peer){ .incarnation = 100 + i,
                                                   .host = hosts[trial->layout.host[i]],
                                                   .contact = member->contact };
    }
    roster.peers = peers;
    return coll_create(self->engine, &roster, &self->coll, err);
}

/* Works in the first round until its end, and checks the error that it ended with. */
static int work_in_first(struct self *self)
{
    struct hvd_err err = { .text = "" };
    pthread_t obeying;
    int rc = make_round(self, ROUND, true, &err);

    if (rc || thread_start(&obeying, 0, obey, self))
        return wrong(self, "no first round: %s", err.text);
    rc = coll_connect(self->coll, TRIAL_PATIENCE_US, &err);
    if (!rc)
        rc = work(self, &err);
    self->seen->returned_us = clock_now_us();
    self->seen->code = rc;
    memcpy(self->seen->why, err.text, sizeof(err.text));
    if (rc != HVD_E_REVOKED && rc != HVD_E_LOST)
        (void)wrong(self, "the round ended with %s: %s", err_name(rc), err.text);
    if (!err.text[0])
        (void)wrong(self, "the error has no text");
    (void)processes_say(self->talk, 'r');
    pthread_join(obeying, NULL);
    if (coll_run(self->coll, &(struct coll_call){ .kind = COLL_BARRIER }, &err) != HVD_E_REVOKED)
        (void)wrong(self, "a round that is over goes on");
    return self->seen->wrong[0] ? 1 : 0;
}

/* An allreduce of all members whose result is known. */
static int one_sum(struct self *self, uint32_t size, uint32_t place, size_t count)
{
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .type = HVD_FLOAT32,
                                    .in = self->in,
                                    .out = self->out,
                                    .count = count };
    uint32_t sum = size * (size + 1) / 2;
    float right = (float)sum;
    struct hvd_err err = { .text = "" };

    for (size_t i = 0; i < count; i++)
        self->in[i] = (float)(place + 1);
    if (coll_run(self->coll, &call, &err))
        return wrong(self, "the second round: %s", err.text);
    for (size_t i = 0; i < count; i++) {
        if (self->out[i] < right || self->out[i] > right)
            return wrong(self, "the second round: number %zu is %g, not %g", i,
                         (double)self->out[i], (double)right);
    }
    return 0;
}

/* Makes a round of the members of this team and sums in it. 0, or a code. */
static int work_in_second(struct self *self)
{
    uint32_t size = 0, place = 0;
    struct hvd_err err = { .text = "" };
    int rc;

    for (uint32_t i = 0; i < self->trial->layout.size; i++) {
        bool with_us = self->shared->members[i].team == self->seen->team;

        size += with_us;
        place += with_us && i < self->rank;
    }
    if (make_round(self, ROUND + 1 + self->seen->team, false, &err))
        return wrong(self, "no second round: %s", err.text);
    rc = coll_connect(self->coll, TRIAL_PATIENCE_US, &err);
    if (rc)
        return wrong(self, "the second round does not connect: %s", err.text);
    for (unsigned i = 0; i < LAST_ACTS && !rc; i++)
        rc = one_sum(self, size, place, i % 2 ? NUMBERS : 1);
    if (!rc)
        coll_bye(self->coll);
    return rc;
}

/* The second round; the first round is freed before it, or after it. */
static int both_rounds(struct self *self)
{
    struct coll *first;
    int rc = work_in_first(self);

    first = self->coll;
    self->coll = NULL;
    if (self->trial->number % 2) {
        coll_free(first);
        first = NULL;
    }
    if (!rc && self->last_word == 'n')
        rc = work_in_second(self);
    else if (!rc && self->last_word != 'q')
        rc = wrong(self, "the test has not sent n (go on)");
    coll_free(self->coll);
    coll_free(first);
    return rc;
}

/* ---- the whole member --- */

/* Enters the network namespace; must run before there is any other thread. */
static int enter_network(struct self *self)
{
    const char *path = self->trial->networks[self->trial->layout.host[self->rank]];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? -1 : setns(fd, CLONE_NEWNET);

    if (fd >= 0)
        close(fd);
    return rc ? wrong(self, "%s cannot be entered", path) : 0;
}

static int with_engine(struct self *self)
{
    struct hvd_err err = { .text = "" };
    enum trial_engine engine = self->trial->engine;
    bool gloo = (engine == ENGINE_HIERARCHY_GLOO || engine == ENGINE_FLAT_GLOO) && gloo_here();
    const struct coll_options options = { .host = address_of(self->trial, self->rank),
                                          .carrier = gloo ? COLL_BY_GLOO : COLL_BY_TCP,
                                          /* Gloo is refused between networks without it */
                                          .security =
                                              gloo ? LINK_SECURITY_NONE : LINK_SECURITY_AUTO,
                                          .flat =
                                              engine == ENGINE_FLAT || engine == ENGINE_FLAT_GLOO };
    int rc = coll_engine_open(&options, &self->engine, &err);

    if (rc)
        return wrong(self, "no engine: %s", err.text);
    (void)snprintf(self->seen->contact, sizeof(self->seen->contact), "%s",
                   coll_engine_contact(self->engine));
    if (processes_say(self->talk, 'c') && processes_hear(self->talk, TRIAL_PATIENCE_US) == 'g')
        rc = both_rounds(self);
    else
        rc = 1;
    coll_engine_close(self->engine);
    return rc;
}

/* In half of the trials the buffers are where other members can read them directly, without a
 * stage. */
static bool is_pooled(const struct trial *trial)
{
    return numbers_mix(trial->seed, trial->number) % 2;
}

static float *get_numbers(const struct trial *trial)
{
    return is_pooled(trial) ? pool_alloc(NUMBERS * sizeof(float), NULL)
                            : mem_zalloc_array(NUMBERS, sizeof(float));
}

static void drop_numbers(const struct trial *trial, float *numbers)
{
    if (is_pooled(trial))
        pool_free(numbers);
    else
        mem_free(numbers);
}

int trial_member(uint32_t rank, int talk, void *seat)
{
    const struct trial_seat *given = seat;
    struct self self = { .trial = given->trial,
                         .shared = given->shared,
                         .seen = &given->shared->members[rank],
                         .rank = rank,
                         .talk = talk };
    struct held before, after;
    int rc = 0;

    if (self.trial->networks)
        rc = enter_network(&self);
    self.in = get_numbers(self.trial);
    self.out = get_numbers(self.trial);
    before = look_at_held();
    if (!rc)
        rc = self.in && self.out ? with_engine(&self) : 1;
    after = look_at_held();
    if (after.files != before.files || after.memories != before.memories)
        rc = wrong(&self, "%zu files and %zu shared memories are left", after.files - before.files,
                   after.memories - before.memories);
    drop_numbers(self.trial, self.in);
    drop_numbers(self.trial, self.out);
    (void)processes_say(talk, rc ? 'w' : 'd');
    return rc ? 3 : 0;
}
