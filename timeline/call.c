#include "timeline/call.h"

#define ARGS_MAX 11

struct args {
    struct timeline_arg items[ARGS_MAX];
    size_t count;
};

static void add_text(struct args *args, const char *name, const char *text)
{
    if (text && text[0])
        args->items[args->count++] = (struct timeline_arg){ .name = name, .text = text };
}

static void add_number(struct args *args, const char *name, uint64_t number)
{
    args->items[args->count++] =
        (struct timeline_arg){ .name = name, .number = (int64_t)(number & INT64_MAX) };
}

void timeline_put_call(struct timeline *timeline, const struct timeline_call *call)
{
    struct args args = { .count = 0 };

    add_number(&args, "number", call->number);
    add_number(&args, "round", call->round);
    if (call->group)
        add_number(&args, "group", call->group);
    add_text(&args, "type", call->type);
    add_text(&args, "op", call->op);
    add_text(&args, "by", call->by);
    if (call->bytes)
        add_number(&args, "bytes", call->bytes);
    add_text(&args, "ended", call->code ? err_name(call->code) : "done");
    add_text(&args, "why", call->code ? call->why : NULL);
    timeline_put_event(timeline, &(struct timeline_event){ .lane = TIMELINE_COLLECTIVES,
                                                           .name = call->operation,
                                                           .begun_us = call->begun_us,
                                                           .ended_us = call->ended_us,
                                                           .args = args.items,
                                                           .arg_count = args.count });
}
