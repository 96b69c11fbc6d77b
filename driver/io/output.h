/*
 * output.h: what workers print, line by line: "[3 n7:1] text" on our own standard output or error,
 * and, when a folder is named, as it is in FOLDER/HOST/SLOT/INCARNATION.out and .err. A carriage
 * return ends a line, too, and is kept.
 *
 * A thread writes, so a terminal that is not read stops nobody: what does not fit in
 * LIMIT_OUTPUT_WAITING_BYTES is left out, and how much of it is said.
 */
#ifndef DRIVER_IO_OUTPUT_H
#define DRIVER_IO_OUTPUT_H

#include "base/err.h"
#include "proto/msg.h"

struct output;

#define OUTPUT_NO_RANK UINT32_MAX

struct output_config {
    const char *folder; /* NULL: none */
    bool timestamps;    /* before each line on the terminal */
    int out_fd;
    int err_fd;
};

/* A folder that can be written; made when it is missing. */
int output_check(const char *folder, struct hvd_err *err) MUST_CHECK;

/* Both are borrowed as long as it lives. The folder is checked. */
int output_create(const struct output_config *config, struct output **ret_output,
                  struct hvd_err *err) MUST_CHECK;

/* Writes what waits, for as long as somebody reads it, LIMIT_OUTPUT_LINGER_US at most. */
void output_free(struct output *output);

/* The rank that it was started with, until it is in a round. */
void output_rank(struct output *output, uint64_t incarnation, uint32_t rank);

/* How a worker is called from now on; OUTPUT_NO_RANK: as it was. */
void output_name(struct output *output, uint64_t incarnation, uint32_t rank, const char *host,
                 uint32_t slot);

/* Has it been named? */
bool output_knows(const struct output *output, uint64_t incarnation);

void output_take(struct output *output, uint64_t incarnation, const struct msg_output *chunk);

/* It prints no more: an unfinished line is finished. */
void output_end(struct output *output, uint64_t incarnation);

#endif
