/*
 * Rounds between processes, one of which is killed or stopped in the middle of its work. As the
 * driver would, the test then cancels the round on the others: each must return.
 *
 * A member is a process with two ends of talk: what it says to the test, and what it is told.
 */
#include "base/mem.h"
#include "base/rng.h"
#include "collectives/coll.h"
#include "os/clock.h"
#include "tests/lib/test.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)
#define CREW_MAX             8
#define CONTACT_MAX          128
#define LONG_MS              60000 /* nothing here takes that long */
#define LONG_US              (LONG_MS * INT64_C(1000))

/* What a member says: its contact, then ACT after each operation, then how it ended. */
struct ending {
    int rc;
    int64_t cancelled_us, returned_us;
    struct hvd_err err;
};

struct member {
    pid_t pid;
    int talk;
    char contact[CONTACT_MAX];
};

struct crew {
    struct member members[CREW_MAX];
    uint32_t size;
    size_t count;
};

static bool read_all(int fd, void *into, size_t length)
{
    struct pollfd readable = { .fd = fd, .events = POLLIN };

    for (size_t at = 0; at < length;) {
        ssize_t got;

        if (poll(&readable, 1, LONG_MS) != 1)
            return false;
        got = read(fd, (char *)into + at, length - at);
        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const void *bytes, size_t length)
{
    return send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* ---- a member ---- */

struct self {
    int talk;
    struct coll *coll;
    int64_t cancelled_us;
};

/* Waits for the word to cancel. */
static void *obey(void *arg)
{
    struct self *self = arg;
    char word;

    if (read_all(self->talk, &word, 1)) {
        self->cancelled_us = clock_now_us();
        coll_cancel(self->coll);
    }
    return NULL;
}

static int work(struct self *self, size_t count, struct hvd_err *err)
{
    float *numbers = mem_zalloc_array(count, sizeof(*numbers));
    const char act = 'a';
    int rc = numbers ? 0 : HVD_E_NOMEM;

    for (unsigned i = 0; !rc; i++) {
        if (i % 4 == 3)
            rc = coll_broadcast(self->coll, numbers, count, HVD_FLOAT32, 0, err);
        else
            rc = coll_allreduce(self->coll, numbers, numbers, count, HVD_FLOAT32, HVD_SUM, err);
        if (!rc)
            (void)send(self->talk, &act, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    mem_free(numbers);
    return rc;
}

static int be_member(struct self *self, uint32_t rank, uint32_t size, size_t count,
                     struct ending *ending)
{
    char contacts[CREW_MAX][CONTACT_MAX] = { { 0 } };
    struct coll_peer peers[CREW_MAX] = { { 0 } };
    const struct coll_roster roster = { 1, rank, size, peers };
    struct coll_engine *engine;
    pthread_t obeying;
    int rc = coll_engine_open("127.0.0.1", &engine, &ending->err);

    if (rc)
        return rc;
    memcpy(contacts[0], coll_engine_contact(engine), strlen(coll_engine_contact(engine)));
    if (!write_all(self->talk, contacts[0], CONTACT_MAX) ||
        !read_all(self->talk, contacts, size * sizeof(contacts[0])))
        return 1;
    for (uint32_t i = 0; i < size; i++)
        peers[i] = (struct coll_peer){ 100 + i, "a", contacts[i] };
    rc = coll_create(engine, &roster, &self->coll, &ending->err);
    if (rc)
        return rc;
    if (pthread_create(&obeying, NULL, obey, self))
        return HVD_E_NOMEM;
    rc = coll_connect(self->coll, LONG_US, &ending->err);
    if (!rc)
        rc = work(self, count, &ending->err);
    ending->returned_us = clock_now_us();
    (void)write_all(self->talk, "r", 1);
    pthread_join(obeying, NULL);
    ending->cancelled_us = self->cancelled_us;
    coll_free(self->coll);
    coll_engine_close(engine);
    return rc;
}

NORETURN static void member(int talk, uint32_t rank, uint32_t size, size_t count)
{
    struct ending ending = { .rc = 0 };
    struct self self = { .talk = talk };
    char end = 'e';

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    ending.rc = be_member(&self, rank, size, count, &ending);
    (void)write_all(talk, &end, 1);
    (void)write_all(talk, &ending, sizeof(ending));
    _exit(0);
}

/* ---- the test's side ---- */

static void crew_close(struct crew *crew)
{
    for (uint32_t i = 0; i < crew->size; i++) {
        struct member *one = &crew->members[i];

        if (one->pid > 0) {
            (void)kill(one->pid, SIGKILL);
            (void)waitpid(one->pid, NULL, 0);
        }
        if (one->talk > 0)
            close(one->talk);
    }
}

static bool crew_start(struct crew *crew, uint32_t rank)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return false;
    crew->members[rank].talk = ends[0];
    crew->members[rank].pid = fork();
    if (crew->members[rank].pid == 0) {
        for (uint32_t i = 0; i <= rank; i++)
            close(crew->members[i].talk);
        member(ends[1], rank, crew->size, crew->count);
    }
    close(ends[1]);
    return crew->members[rank].pid > 0;
}

/* Everybody knows everybody; they connect from here on. */
static bool crew_open(struct crew *crew, uint32_t size, size_t count)
{
    char contacts[CREW_MAX][CONTACT_MAX];

    memset(crew, 0, sizeof(*crew));
    crew->size = size;
    crew->count = count;
    for (uint32_t i = 0; i < size; i++) {
        if (!crew_start(crew, i))
            return false;
    }
    for (uint32_t i = 0; i < size; i++) {
        if (!read_all(crew->members[i].talk, contacts[i], CONTACT_MAX))
            return false;
    }
    for (uint32_t i = 0; i < size; i++) {
        if (!write_all(crew->members[i].talk, contacts, size * sizeof(contacts[0])))
            return false;
    }
    return true;
}

/* So many operations are done by that member, and then some more time. */
static bool crew_passes(struct crew *crew, uint32_t rank, uint64_t acts, int64_t more_us)
{
    int64_t until_us;
    char act = 'a';

    for (uint64_t i = 0; i < acts && act == 'a'; i++) {
        if (!read_all(crew->members[rank].talk, &act, 1))
            return false;
    }
    until_us = clock_now_us() + more_us;
    while (clock_now_us() < until_us) { /* not asleep: at any moment of an operation */
    }
    return act == 'a';
}

static bool ends(struct member *one, struct ending *ret_ending)
{
    char act = 'a';

    while (act != 'e') {
        if (!read_all(one->talk, &act, 1))
            return false;
    }
    return read_all(one->talk, ret_ending, sizeof(*ret_ending));
}

/* Each that has not been hurt returns soon after it was cancelled. */
static void check_survivors(struct test *t, struct crew *crew, uint32_t hurt)
{
    struct ending ending = { .rc = 0 };

    for (uint32_t i = 0; i < crew->size; i++) {
        if (i != hurt)
            CHECK(t, write_all(crew->members[i].talk, "x", 1));
    }
    for (uint32_t i = 0; i < crew->size; i++) {
        if (i == hurt)
            continue;
        CHECK(t, ends(&crew->members[i], &ending));
        if (ending.rc != HVD_E_LOST)
            CHECK_CODE(t, ending.rc, HVD_E_REVOKED);
        CHECK(t, ending.err.text[0]);
    }
out:;
}

static const size_t counts[] = { 1024, 10000, 262144, 4194304 };

static void survivors_of_a_kill_return(struct test *t)
{
    struct crew crew = { .size = 0 };
    struct rng rng;

    rng_seed(&rng, 7);
    for (unsigned i = 0; i < 24; i++) {
        uint32_t size = (uint32_t)(2 + rng_below(&rng, CREW_MAX - 1)), hurt;

        CHECK(t, crew_open(&crew, size, counts[i % ARRAY_SIZE(counts)]));
        hurt = (uint32_t)rng_below(&rng, size);
        CHECK(t, crew_passes(&crew, hurt, rng_below(&rng, 6), (int64_t)rng_below(&rng, 3000)));
        CHECK(t, !kill(crew.members[hurt].pid, SIGKILL));
        check_survivors(t, &crew, hurt);
        if (t->failed)
            goto out;
        crew_close(&crew);
        crew.size = 0;
    }
out:
    crew_close(&crew);
}

/* Without a word from anybody: the lines between members end with the process. */
static void survivors_see_a_death_themselves(struct test *t)
{
    struct ending ending = { .rc = 0 };
    struct crew crew = { .size = 0 };

    for (unsigned i = 0; i < 8; i++) {
        CHECK(t, crew_open(&crew, 4, counts[i % ARRAY_SIZE(counts)]));
        CHECK(t, crew_passes(&crew, 1, 3, i * 500));
        CHECK(t, !kill(crew.members[1].pid, SIGKILL));
        for (uint32_t k = 0; k < 4; k++) {
            char act = 'a';

            if (k == 1)
                continue;
            while (act != 'r') /* it has returned, and nobody has told it to cancel */
                CHECK(t, read_all(crew.members[k].talk, &act, 1));
            CHECK(t, write_all(crew.members[k].talk, "x", 1));
            CHECK(t, ends(&crew.members[k], &ending));
            CHECK_INT(t, ending.returned_us, <, ending.cancelled_us);
            CHECK_HAS(t, ending.err.text, "rank 1 (incarnation 101)");
        }
        crew_close(&crew);
        crew.size = 0;
    }
out:
    crew_close(&crew);
}

static void a_stopped_member_holds_up_nobody(struct test *t)
{
    struct crew crew = { .size = 0 };
    struct rng rng;

    rng_seed(&rng, 9);
    for (unsigned i = 0; i < 12; i++) {
        CHECK(t, crew_open(&crew, 3, counts[i % ARRAY_SIZE(counts)]));
        CHECK(t, crew_passes(&crew, 2, 1 + rng_below(&rng, 5), (int64_t)rng_below(&rng, 3000)));
        CHECK(t, !kill(crew.members[2].pid, SIGSTOP));
        check_survivors(t, &crew, 2);
        if (t->failed)
            goto out;
        crew_close(&crew);
        crew.size = 0;
    }
out:
    crew_close(&crew);
}

/* In the middle of connecting. */
static void a_death_while_connecting(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (unsigned i = 0; i < 24; i++) {
        CHECK(t, crew_open(&crew, 4, 16));
        CHECK(t, crew_passes(&crew, 3, 0, i * 500));
        CHECK(t, !kill(crew.members[3].pid, i % 2 ? SIGKILL : SIGSTOP));
        check_survivors(t, &crew, 3);
        if (t->failed)
            goto out;
        crew_close(&crew);
        crew.size = 0;
    }
out:
    crew_close(&crew);
}

TESTS(NO_TORTURE(survivors_of_a_kill_return), NO_TORTURE(survivors_see_a_death_themselves),
      NO_TORTURE(a_stopped_member_holds_up_nobody), NO_TORTURE(a_death_while_connecting))
