/*
 * client.h: one request to a driver, over the control socket in the job's folder. The answer is
 * printed on standard output, or kept.
 */
#ifndef DRIVER_CLI_CLIENT_H
#define DRIVER_CLI_CLIENT_H

#include "base/buf.h"
#include "proto/msg.h"

struct client_outcome {
    int code;         /* the code of the answer; 0: the request was carried out */
    bool begun;       /* the first part of the answer has come */
    bool answered;    /* the last part of the answer has come */
    bool interrupted; /* the user pressed Ctrl-C */
    bool reader_gone; /* standard output cannot be written, because its reader has ended */
};

/*
 * Sends the request to the control socket in the folder, and prints the answer. If ret_answer is
 * not NULL, the answer is appended to it, and not printed. The text of a refusal goes to err; with
 * --json it is treated like an answer. timeout_us: how long the first part of the answer may take;
 * TIME_NEVER: no limit. Returns 0 if the driver was connected; *ret_outcome then says how the
 * request ended. HVD_E_NOTFOUND: no process listens on the socket.
 */
int client_ask(const char *folder, const struct msg_ask *ask, int64_t timeout_us,
               struct client_outcome *ret_outcome, struct buf *ret_answer,
               struct hvd_err *err) MUST_CHECK;

/* Prints a text of another process; control characters are made visible (base/text_show.h). Returns
 * 0 or HVD_E_NOMEM. */
int client_print(const char *text, size_t length) MUST_CHECK;

#endif
