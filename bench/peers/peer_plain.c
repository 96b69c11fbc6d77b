/*
 * peer_plain: the same step as peer_hvd's with the same collectives, but without driver, agents and
 * elastic loop: what these cost in the steady state is the difference.
 *
 *     peer_plain HOSTS SLOTS STEPS
 */
#include "base/text.h"
#include "bench/coll_member.h"
#include "bench/peers/peer_step.h"

#include <stdio.h>
#include <string.h>

static void steps(struct coll *coll, const struct lockstep_self *seat, struct peer_step *step,
                  uint64_t times)
{
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .type = HVD_FLOAT32,
                                    .op = HVD_SUM,
                                    .in = step->numbers,
                                    .out = step->numbers,
                                    .count = step->floats };
    struct hvd_err err = { .text = "" };

    for (uint64_t i = 1; i <= times; i++) {
        peer_step_fill(step);
        lockstep_must(coll_run(coll, &call, &err), "allreduce", &err);
        peer_step_work(step, (int)seat->size);
        if (seat->rank == 0)
            peer_step_note(step, 1, (int64_t)i, (int)seat->size);
    }
}

static void live(struct lockstep_self *seat, const void *arg)
{
    struct coll_member member;
    struct lockstep_order order;
    struct peer_step step;
    struct coll *coll;

    peer_step_open(&step);
    coll_member_open(&member, seat, arg);
    coll_member_meet(&member);
    coll = coll_member_round(&member, 1);
    coll_member_connect(coll);
    while (lockstep_next(seat, &order)) {
        lockstep_gate(seat);
        steps(coll, seat, &step, order.bytes);
        lockstep_done(seat);
    }
    coll_free(coll);
    coll_member_close(&member);
    peer_step_close(&step);
}

static bool read_number(const char *text, const char *what, uint64_t most, uint64_t *ret_number)
{
    struct hvd_err err;

    if (!text_parse_u64((struct span){ text, strlen(text) }, 1, most, what, ret_number, &err))
        return true;
    fprintf(stderr, "peer_plain: %s\n", err.text);
    return false;
}

int main(int argc, char **argv)
{
    uint64_t hosts, slots, times;
    struct coll_member_place place = { .hosts = 0 };
    struct lockstep set;

    if (argc != 4 || !read_number(argv[1], "HOSTS", 4, &hosts) ||
        !read_number(argv[2], "SLOTS", 8, &slots) ||
        !read_number(argv[3], "STEPS", 1000000, &times)) {
        fprintf(stderr, "usage: peer_plain HOSTS SLOTS STEPS\n");
        return 2;
    }
    place.hosts = (uint32_t)hosts;
    lockstep_fork(&set, "plain", (uint32_t)(hosts * slots), live, &place);
    lockstep_round(&set, &(struct lockstep_order){ .work = 1, .times = 1, .bytes = times });
    lockstep_end(&set);
    return 0;
}
