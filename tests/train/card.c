#include "tests/train/card.h"

#include <stdio.h>
#include <stdlib.h>

static void must(const struct card *card, int code, const char *what)
{
    struct hvd_err err;

    if (!cuda_judge(card->cuda, code, what, &err))
        return;
    fprintf(stderr, "card: %s\n", err.text);
    exit(CARD_LOST);
}

static cuda_address address_of(const void *memory)
{
    return (cuda_address)(uintptr_t)memory;
}

void card_open(struct card *card, int ordinal, bool own_stream)
{
    struct CUctx_st *context;
    struct hvd_err err;
    int device = 0;

    *card = (struct card){ .cuda = NULL };
    if (cuda_open(&card->cuda, &err)) {
        fprintf(stderr, "card: %s\n", err.text);
        exit(CARD_LOST);
    }
    must(card, card->cuda->device_get(&device, ordinal), "the device");
    must(card, card->cuda->context_retain(&context, device), "its context");
    must(card, card->cuda->context_push(context), "to work with it");
    if (own_stream)
        must(card, card->cuda->stream_create(&card->stream, CUDA_STREAM_NON_BLOCKING, 0),
             "a stream");
}

void *card_alloc(const struct card *card, size_t bytes)
{
    cuda_address at = 0;

    must(card, card->cuda->memory_alloc(&at, bytes), "memory");
    must(card, card->cuda->fill(at, 0, bytes, card->stream), "to clear it");
    must(card, card->cuda->stream_sync(card->stream), "to clear it");
    return (void *)(uintptr_t)at;
}

void card_put(const struct card *card, void *to, const void *from, size_t bytes)
{
    must(card, card->cuda->to_device(address_of(to), from, bytes, card->stream), "a copy in");
}

void card_get(const struct card *card, void *to, const void *from, size_t bytes)
{
    must(card, card->cuda->to_host(to, address_of(from), bytes, card->stream), "a copy out");
    must(card, card->cuda->stream_sync(card->stream), "to wait for a copy out");
}
