#include "bench/gpu/nccl_work.h"
#include "bench/gpu/questions.h"

#include <signal.h>

#define WATCHED_S    5
#define MOMENT_US    30000 /* at work, before one is struck: to 30 ms later */
#define NEVER_ENDS_S 10

enum word { WENT_ON, NOTICED, SILENT };

/* One allreduce: it ends, or NCCL says that something is wrong, or nothing happens for WATCHED_S
 * after the last member was struck. */
static enum word work_once(struct member *member, struct ncclComm *comm)
{
    const struct nccl *nccl = member->nccl;
    int64_t until_us = now_us() + TEAM_WAIT_S * INT64_C(1000000);
    int code = nccl->allreduce(member->data, member->data, MEMBER_NUMBERS, NCCL_FLOAT32, NCCL_SUM,
                               comm, member->stream);

    while (code == NCCL_OK || code == NCCL_IN_PROGRESS) {
        int64_t struck_us = atomic_load(&member->page->struck_us);
        int rc = nccl->async_error(comm, &code);

        if (rc != NCCL_OK)
            return NOTICED;
        if (code == NCCL_OK && member->cuda->stream_query(member->stream) == CUDA_OK)
            return WENT_ON;
        if (struck_us && now_us() > struck_us + WATCHED_S * INT64_C(1000000))
            return SILENT;
        if (now_us() > until_us)
            member_fail(member, "an allreduce", "it does not end, and no member was struck");
        nap_us(100);
    }
    return NOTICED;
}

/* The answer of NCCL, and then the time to get rid of the communicator. */
static void say_what_came(struct member *member, struct ncclComm *comm, enum word word)
{
    int64_t at_us = now_us();

    if (word == NOTICED)
        member_add(member, "asynchronous error of a member that is left, after", "ms",
                   (double)(at_us - atomic_load(&member->page->struck_us)) / 1e3);
    member_add(member, word == NOTICED ? "members with an error" : "members without a word in 5 s",
               "", 1);
    figure_say(&member->page->figures, member->question, "the kernel meanwhile", member->size, "%s",
               work_done(member, member->stream, 0) ? "ends by itself" : "waits");
    at_us = now_us();
    if (member->nccl->revoke_comm) {
        int code = member->nccl->revoke_comm(comm, 0);

        if (code != NCCL_OK && code != NCCL_IN_PROGRESS)
            figure_say(&member->page->figures, member->question, "then a revoke", member->size,
                       "%s", member->nccl->result_text(code));
        else if (work_done(member, member->stream, NEVER_ENDS_S))
            member_add(member, "then a revoke, until the stream is free", "ms",
                       (double)(now_us() - at_us) / 1e3);
        else
            member_fail(member, "a revoke", "the kernel does not end");
    }
    member_add(member, "then an abort", "ms", work_abort(member, comm));
}

static void work_on(struct member *member)
{
    struct ncclComm *comm = work_comm(member, member->size, "");
    enum word word;

    work_verify(member, comm, member->size);
    member_gate(member);
    do {
        atomic_fetch_add(&member->page->at_work, 1);
        word = work_once(member, comm);
    } while (word == WENT_ON);
    say_what_came(member, comm, word);
}

static void strike_with(struct team *team, int number)
{
    pid_t last = team->pids[team->size - 1];
    int64_t until_us = now_us() + TEAM_WAIT_S * INT64_C(1000000);

    while (atomic_load(&team->page->at_work) < 4 * team->size && now_us() < until_us)
        nap_us(1000);
    nap_us(now_us() % MOMENT_US);
    atomic_store(&team->page->struck_us, now_us());
    kill(last, number);
}

static void strike_dead(struct team *team)
{
    strike_with(team, SIGKILL);
}

/* It is killed when the others have seen enough. */
static void strike_still(struct team *team)
{
    strike_with(team, SIGSTOP);
    nap_us((WATCHED_S + 3) * INT64_C(1000000));
    kill(team->pids[team->size - 1], SIGKILL);
}

void ask_killed(struct team *team)
{
    team->live = work_on;
    for (uint32_t i = 0; i < (team->options->times + 1) / 2; i++)
        (void)team_run(team, "the end", TEAM_WAIT_S, strike_dead);
}

void ask_frozen(struct team *team)
{
    team->live = work_on;
    (void)team_run(team, "the end", TEAM_WAIT_S, strike_still);
}
