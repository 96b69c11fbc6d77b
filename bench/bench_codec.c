/*
 * bench_codec: what a message costs on its way, beside copying its bytes. The largest one that is
 * sent in a recovery is the ROUND; the smallest is the NEXT_CHECK on which a switch waits.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "proto/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS 0.5

struct load {
    struct msg msg;
    struct buf wire;
    struct frame frame;
    char *copy;
};

static void encode(void *arg)
{
    struct load *load = arg;

    buf_clear(&load->wire);
    if (msg_encode(&load->msg, &load->wire, NULL))
        abort();
    bench_keep(load->wire.data);
}

static void decode(void *arg)
{
    struct load *load = arg;
    struct msg msg = { 0 };

    if (msg_decode(&load->frame, &msg, NULL))
        abort();
    bench_keep(msg.memory.chunks);
    msg_release(&msg);
}

static void copy(void *arg)
{
    struct load *load = arg;

    memcpy(load->copy, load->wire.data, load->wire.length);
    bench_keep(load->copy);
}

static void measure(const char *name, const struct msg *msg)
{
    struct load load = { .msg = *msg };
    struct bench_result copying;
    char line[64];

    buf_init(&load.wire, LIMIT_FRAME_BODY_BYTES + FRAME_HEADER_BYTES);
    encode(&load);
    load.copy = mem_alloc(load.wire.length);
    if (!load.copy)
        abort();
    load.frame = (struct frame){ .type = (uint16_t)msg->type,
                                 .body = (const uint8_t *)load.wire.data + FRAME_HEADER_BYTES,
                                 .length = load.wire.length - FRAME_HEADER_BYTES };
    copying = bench_time(copy, &load, SECONDS);
    snprintf(line, sizeof(line), "%s, %zu bytes: copy", name, load.wire.length);
    bench_line(line, copying, "copy", copying);
    snprintf(line, sizeof(line), "%s: encode", name);
    bench_line(line, bench_time(encode, &load, SECONDS), "copy", copying);
    snprintf(line, sizeof(line), "%s: decode and check", name);
    bench_line(line, bench_time(decode, &load, SECONDS), "copy", copying);
    mem_free(load.copy);
    buf_release(&load.wire);
}

static void measure_round(uint32_t workers)
{
    struct msg msg = { .type = MSG_ROUND, .term = 1, .round = 2 };
    struct msg_member *members = mem_zalloc_array(workers, sizeof(*members));
    static const char *const addresses[] = { "tcp:10.0.12.34:40123" };
    char name[32];

    if (!members)
        abort();
    for (uint32_t i = 0; i < workers; i++)
        members[i] = (struct msg_member){
            i + 1, "node-0123.cluster", i % 8, {addresses, 1}
        };
    msg.u.round.members = (struct msg_member_list){ members, workers };
    snprintf(name, sizeof(name), "ROUND of %u", workers);
    measure(name, &msg);
    mem_free(members);
}

int main(void)
{
    measure("NEXT_CHECK",
            &(struct msg){
                .type = MSG_NEXT_CHECK, .incarnation = 7, .round = 2, .u.next_check = { 41 } });
    measure_round(8);
    measure_round(1000);
    measure_round(10000);
    return 0;
}
