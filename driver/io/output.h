/*
 * output.h: prints the output of workers line by line. A line "[3 n7:1] text" goes to the driver's
 * own standard output or error. If a folder is named, each worker's output goes there as well,
 * unchanged, to FOLDER/HOST/SLOT/INCARNATION.out and .err (output_file.h). A carriage return also
 * ends a line, and is kept. On a terminal, control characters are escaped and only colours pass
 * (base/text_show.h); files and pipes get the bytes that the worker printed.
 *
 * A thread writes, so a terminal that is not read never stops the driver. Output that does not fit
 * into LIMIT_OUTPUT_WAITING_BYTES is dropped, and a log line says how many bytes were dropped.
 */
#ifndef DRIVER_IO_OUTPUT_H
#define DRIVER_IO_OUTPUT_H

#include "base/err.h"
#include "proto/msg.h"

struct output;

#define OUTPUT_NO_RANK UINT32_MAX /* the worker has no rank in a round now */

struct output_config {
    const char *folder;   /* the folder of --output-filename; NULL: none */
    uint64_t limit_bytes; /* the most bytes of all files of one worker; UINT64_MAX: no limit */
    bool timestamps;      /* true: each line on standard output or error begins with the time */
    int out_fd;           /* where the standard output of workers is printed */
    int err_fd;           /* where the standard error of workers is printed */
};

/* Makes the folder if it is missing. Returns 0 if files can be written into it. */
int output_check(const char *folder, struct hvd_err *err) MUST_CHECK;

/* Checks the folder with output_check, and starts the thread that writes. The config and its texts
 * are borrowed while the output lives. */
int output_create(const struct output_config *config, struct output **ret_output,
                  struct hvd_err *err) MUST_CHECK;

/* Waits until all output is written, at most LIMIT_OUTPUT_LINGER_US, and frees the output. */
void output_free(struct output *output);

/* Sets the rank with which the worker was started. The rank stays until output_name names another.
 */
void output_rank(struct output *output, uint64_t incarnation, uint32_t rank);

/* Sets the label of the worker's lines from now on. If `rank` is OUTPUT_NO_RANK, the old rank
 * stays. */
void output_name(struct output *output, uint64_t incarnation, uint32_t rank, const char *host,
                 uint32_t slot);

/* True: output_name was called for this worker. */
bool output_knows(const struct output *output, uint64_t incarnation);

/* Takes output that a worker has printed: whole lines are printed at once, and the beginning of an
 * unfinished line is kept. */
void output_take(struct output *output, uint64_t incarnation, const struct msg_output *chunk);

/* Called when the worker has ended: prints its unfinished last line, and forgets the worker. */
void output_end(struct output *output, uint64_t incarnation);

#endif
