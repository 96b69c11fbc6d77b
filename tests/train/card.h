/*
 * card.h: memory of a GPU, as a program has it that calls the driver by itself. The host cannot
 * touch it: what is computed here is copied out, changed and copied in. A call of the driver that
 * fails ends the process, as it would end such a program.
 */
#ifndef TESTS_TRAIN_CARD_H
#define TESTS_TRAIN_CARD_H

#include "gpu/cuda.h"

#define CARD_LOST 5 /* the process's exit code then */

struct card {
    const struct cuda *cuda;
    struct CUstream_st *stream; /* NULL: the default one */
};

/* From now on the calling thread works with that device. */
void card_open(struct card *card, int ordinal, bool own_stream);
void *card_alloc(const struct card *card, size_t bytes); /* zeroed */

/* Behind what is in the stream. What is put must stay as it is until the next get, which waits. */
void card_put(const struct card *card, void *to, const void *from, size_t bytes);
void card_get(const struct card *card, void *to, const void *from, size_t bytes);

#endif
