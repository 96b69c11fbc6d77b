#include "tests/lib/nccl_crew.h"

#include "os/thread.h"
#include "tests/lib/fake_gpu.h"

#include <sched.h>

/* Where members meet, and who has gone wrong comes no more. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t news;
    int size, here, rounds;
    bool wrong;
} place = { .lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER };

void crew_meet(struct crew_member *member)
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

static void tell_wrong(void)
{
    pthread_mutex_lock(&place.lock);
    place.wrong = true;
    pthread_cond_broadcast(&place.news);
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

int crew_init(struct crew_member *member)
{
    struct nccl_config config = { .size = sizeof(config),
                                  .magic = NCCL_CONFIG_MAGIC,
                                  .version = NCCL_CONFIG_VERSION };

    return member->nccl->comm_init(&member->comm, member->size, member->id, member->rank, &config);
}

int crew_settled(struct crew_member *member)
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

int crew_ended(struct crew_member *member, int code)
{
    if (code == NCCL_IN_PROGRESS)
        code = crew_settled(member);
    return code ? code : member->cuda->stream_sync(member->stream);
}

int crew_abort(struct crew_member *member)
{
    int code = member->comm ? member->nccl->comm_abort(member->comm) : 0;

    member->comm = NULL;
    return code;
}

/* ---- the thread of one ----------------------------------------------------------------------- */

static char *memory_of(struct crew_member *member, char **ret_seen)
{
    cuda_address at = 0;

    if (member->cuda->memory_alloc(&at, CREW_BYTES))
        return NULL;
    *ret_seen = fake_gpu_memory((void *)(uintptr_t)at);
    return (char *)(uintptr_t)at;
}

static void make(struct crew_member *member)
{
    CREW_CHECK(member, gpu_device_get(member->rank, &member->device, NULL) == 0);
    CREW_CHECK(member, gpu_enter(member->device, NULL) == 0);
    member->cuda = member->device->cuda;
    CREW_CHECK(member,
               member->cuda->stream_create(&member->stream, CUDA_STREAM_NON_BLOCKING, 0) == 0);
    member->in = memory_of(member, &member->in_seen);
    member->out = memory_of(member, &member->out_seen);
    CREW_CHECK(member, member->in && member->out);
    if (member->unmade)
        return;
    CREW_CHECK(member, crew_init(member) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, crew_settled(member) == NCCL_OK);
}

struct share {
    struct crew_member *member;
    crew_fn *play;
};

static void *member_main(void *arg)
{
    struct share *share = arg;
    struct crew_member *member = share->member;

    make(member);
    if (!member->wrong)
        share->play(member);
    if (member->wrong)
        tell_wrong();
    crew_meet(member); /* another may still need what this one has brought */
    (void)crew_abort(member);
    if (member->stream)
        (void)member->cuda->stream_destroy(member->stream);
    if (member->in)
        (void)member->cuda->memory_free((cuda_address)(uintptr_t)member->in);
    if (member->out)
        (void)member->cuda->memory_free((cuda_address)(uintptr_t)member->out);
    if (member->cuda)
        gpu_leave(member->device);
    return NULL;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void count_left(struct test *t)
{
    static const char *const whats[] = { "memory", "streams", "events", "pinned", "communicators" };

    for (size_t i = 0; i < ARRAY_SIZE(whats); i++)
        if (!t->failed && fake_gpu_live(whats[i]))
            test_fail(t, __FILE__, __LINE__, "%zu %s are left", fake_gpu_live(whats[i]), whats[i]);
}

static void run(struct test *t, int size, crew_fn *play, void *arg, bool unmade)
{
    struct crew_member members[CREW_MAX] = { { .rank = 0 } };
    struct share shares[CREW_MAX];
    const struct nccl *nccl;
    struct nccl_id id;
    int started = 0;

    fake_gpu_use(CREW_MAX);
    place.size = size;
    CHECK_OK(t, nccl_open(&nccl, NULL));
    CHECK_INT(t, nccl->unique_id(&id), ==, 0);
    for (; started < size; started++) {
        members[started] = (struct crew_member){
            .nccl = nccl, .id = id, .rank = started, .size = size, .arg = arg, .unmade = unmade
        };
        shares[started] = (struct share){ .member = &members[started], .play = play };
        CHECK_OK(t, thread_start(&members[started].thread, 0, member_main, &shares[started]));
    }
out:
    for (int i = 0; i < started; i++)
        pthread_join(members[i].thread, NULL);
    for (int i = 0; i < started; i++)
        if (members[i].wrong && !t->failed)
            test_fail(t, __FILE__, members[i].wrong_line, "member %d: %s", i, members[i].wrong);
    if (started)
        count_left(t);
}

void crew_run(struct test *t, int size, crew_fn *play, void *arg)
{
    run(t, size, play, arg, false);
}

void crew_run_unmade(struct test *t, int size, crew_fn *play, void *arg)
{
    run(t, size, play, arg, true);
}
