/*
 * calls.c: a collective as an event of the timeline. Called by collectives/ on the thread that has
 * made the call. An argument without a value is left out.
 */
#include "timeline/calls.h"

#define CALL_ARGS_MAX 16

/* The arguments of a collective's event. */
struct args {
    struct timeline_arg items[CALL_ARGS_MAX];
    size_t count;
};

/* Adds an argument, unless its text is missing or empty. */
static void args_add_text(struct args *args, const char *name, const char *text)
{
    if (text && text[0])
        args->items[args->count++] = (struct timeline_arg){ .name = name, .text = text };
}

/* Adds an argument that is a number; the highest bit is dropped, because the events have signed
 * numbers. */
static void args_add_number(struct args *args, const char *name, uint64_t number)
{
    args->items[args->count++] =
        (struct timeline_arg){ .name = name, .number = (int64_t)(number & INT64_MAX) };
}

/* Shows a collective that has ended as one event. Arguments without a value are left out, so the
 * count of arguments differs from call to call. */
void timeline_call(struct timeline *timeline, const struct timeline_call *call)
{
    struct args args = { .count = 0 };

    args_add_number(&args, "number", call->number);
    args_add_number(&args, "round", call->round);
    args_add_number(&args, "rank", call->rank);
    if (call->group) {
        args_add_number(&args, "group", call->group);
        args_add_number(&args, "lowest", call->lowest_rank);
    }
    args_add_number(&args, "members", call->members);
    args_add_text(&args, "type", call->type);
    args_add_text(&args, "op", call->op);
    args_add_text(&args, "by", call->by);
    if (call->bytes)
        args_add_number(&args, "bytes", call->bytes);
    if (call->requests)
        args_add_number(&args, "requests", call->requests);
    if (call->arrival.knows_last) {
        args_add_number(&args, "last", call->arrival.last);
        args_add_number(&args, "early_us", (uint64_t)call->arrival.early_us);
    }
    args_add_text(&args, "ended", call->code ? err_name(call->code) : "done");
    args_add_text(&args, "why", call->code ? call->why : NULL);
    timeline_event(timeline,
                   &(struct timeline_event){ TIMELINE_COLLECTIVES, call->operation, call->begun_us,
                                             call->ended_us, args.items, args.count });
}

/* Shows a phase of a collective. bytes 0: the phase moves no bytes, and the event has no
 * argument. */
void timeline_phase(struct timeline *timeline, const char *name, uint64_t bytes, int64_t begun_us,
                    int64_t ended_us)
{
    const struct timeline_arg arg = { .name = "bytes", .number = (int64_t)(bytes & INT64_MAX) };

    timeline_event(timeline, &(struct timeline_event){ TIMELINE_PHASES, name, begun_us, ended_us,
                                                       &arg, bytes ? 1 : 0 });
}
