/*
 * nccl_team.c: the threads, devices and communicators of nccl_team.h. When a member fails a check,
 * the other members stop waiting for it.
 */
#include "tests/lib/nccl_team.h"

#include "tests/lib/fake_gpu.h"
#include "tests/lib/threads.h"

#include <sched.h>

/* The barrier of the members; a member that has failed a check does not come to it any more. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t news;
    int size, here, rounds;
    bool wrong;
} place = { .lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER };

void team_meet(struct team_member *member)
{
    int round;

    (void)member;
    pthread_mutex_lock(&place.lock);
    round = place.rounds;
    if (++place.here == place.size) {
        place.here = 0;
        place.rounds++;
        pthread_cond_broadcast(&place.news);
    }
    while (round == place.rounds && !place.wrong)
        pthread_cond_wait(&place.news, &place.lock);
    pthread_mutex_unlock(&place.lock);
}

static bool is_wrong(void)
{
    bool wrong;

    pthread_mutex_lock(&place.lock);
    wrong = place.wrong;
    pthread_mutex_unlock(&place.lock);
    return wrong;
}

int team_init(struct team_member *member)
{
    struct nccl_config config = { .size = sizeof(config),
                                  .magic = NCCL_CONFIG_MAGIC,
                                  .version = NCCL_CONFIG_VERSION };

    return member->nccl->comm_init(&member->comm, member->size, member->id, member->rank, &config);
}

int team_settled(struct team_member *member)
{
    int state = NCCL_IN_PROGRESS;

    while (state == NCCL_IN_PROGRESS && !is_wrong()) {
        int code = member->nccl->async_error(member->comm, &state);

        if (code)
            return code;
        sched_yield();
    }
    return state;
}

int team_ended(struct team_member *member, int code)
{
    if (code == NCCL_IN_PROGRESS)
        code = team_settled(member);
    return code ? code : member->cuda->stream_sync(member->stream);
}

int team_abort(struct team_member *member)
{
    int code = member->comm ? member->nccl->comm_abort(member->comm) : 0;

    member->comm = NULL;
    return code;
}

/* ---- the thread of one member ---------------------------------------------------------------- */

static char *memory_of(struct team_member *member, char **ret_seen)
{
    cuda_address at = 0;

    if (member->cuda->memory_alloc(&at, TEAM_BYTES))
        return NULL;
    *ret_seen = fake_gpu_memory((void *)(uintptr_t)at);
    return (char *)(uintptr_t)at;
}

static void make(struct team_member *member)
{
    TEAM_CHECK(member, gpu_device_get(member->rank, &member->device, NULL) == 0);
    TEAM_CHECK(member, gpu_enter(member->device, NULL) == 0);
    member->cuda = member->device->cuda;
    TEAM_CHECK(member,
               member->cuda->stream_create(&member->stream, CUDA_STREAM_NON_BLOCKING, 0) == 0);
    member->in = memory_of(member, &member->in_seen);
    member->out = memory_of(member, &member->out_seen);
    TEAM_CHECK(member, member->in && member->out);
    if (member->unmade)
        return;
    TEAM_CHECK(member, team_init(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, team_settled(member) == NCCL_OK);
}

struct play {
    struct team_member members[TEAM_MAX];
    team_fn *act;
};

/* The thread of a member: makes, acts, waits for all members, and frees what it made. */
static void act_one(void *arg, uint32_t rank)
{
    struct play *play = arg;
    struct team_member *member = &play->members[rank];

    make(member);
    if (!member->wrong)
        play->act(member);
    if (member->wrong) {
        pthread_mutex_lock(&place.lock);
        place.wrong = true;
        pthread_cond_broadcast(&place.news);
        pthread_mutex_unlock(&place.lock);
    }
    team_meet(member); /* another member may still use the memory of this one */
    (void)team_abort(member);
    if (member->stream)
        (void)member->cuda->stream_destroy(member->stream);
    if (member->in)
        (void)member->cuda->memory_free((cuda_address)(uintptr_t)member->in);
    if (member->out)
        (void)member->cuda->memory_free((cuda_address)(uintptr_t)member->out);
    if (member->cuda)
        gpu_leave(member->device);
}

/* ---- all members ----------------------------------------------------------------------------- */

/* Runs act on `size` members; then checks that they succeeded and that no object is left. */
static void run(struct test *t, int size, team_fn *act, void *arg, bool unmade)
{
    struct play play = { .act = act };
    const struct nccl *nccl;
    struct nccl_id id;
    static const char *const whats[] = { "memory", "streams", "events", "pinned", "communicators" };

    fake_gpu_use(TEAM_MAX);
    place.size = size;
    CHECK_OK(t, nccl_open(&nccl, NULL));
    CHECK_INT(t, nccl->unique_id(&id), ==, 0);
    for (int i = 0; i < size; i++)
        play.members[i] = (struct team_member){
            .nccl = nccl, .id = id, .rank = i, .size = size, .arg = arg, .unmade = unmade
        };
    threads_run((uint32_t)size, NULL, act_one, &play);
    for (int i = 0; i < size; i++)
        if (play.members[i].wrong && !t->failed)
            test_fail(t, __FILE__, play.members[i].wrong_line, "member %d: %s", i,
                      play.members[i].wrong);
    for (size_t i = 0; i < ARRAY_SIZE(whats); i++)
        if (!t->failed && fake_gpu_live(whats[i]))
            test_fail(t, __FILE__, __LINE__, "%zu %s are left", fake_gpu_live(whats[i]), whats[i]);
out:;
}

void team_run(struct test *t, int size, team_fn *act, void *arg)
{
    run(t, size, act, arg, false);
}

void team_run_unmade(struct test *t, int size, team_fn *act, void *arg)
{
    run(t, size, act, arg, true);
}
