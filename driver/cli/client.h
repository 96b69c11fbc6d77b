/*
 * client.h: one request to a driver. The answer is printed on standard output, or kept.
 */
#ifndef DRIVER_CLI_CLIENT_H
#define DRIVER_CLI_CLIENT_H

#include "base/buf.h"
#include "proto/msg.h"

struct client_outcome {
    int code;         /* the code in the last part of the answer */
    bool begun;       /* the first part of the answer has come */
    bool answered;    /* the last part of the answer has come */
    bool interrupted; /* the user pressed Ctrl-C */
    bool reader_gone; /* standard output cannot be written, because its reader has ended */
};

/*
 * Sends the request to the control socket in the folder and prints the answer; ret_answer not NULL:
 * appends the answer to it as it comes, instead. The text of a refusal goes to err, but with --json
 * it is printed like an answer. timeout_us: how long the first part of the answer may take;
 * TIME_NEVER: no limit. Returns 0 if the driver was connected; then *ret_outcome says how the
 * request ended. HVD_E_NOTFOUND: no process listens on the socket.
 */
int client_ask(const char *folder, const struct msg_ask *ask, int64_t timeout_us,
               struct client_outcome *ret_outcome, struct buf *ret_answer,
               struct hvd_err *err) MUST_CHECK;

/* Prints a text of another process; control characters are made visible (base/text_show.h). Returns
 * 0 or HVD_E_NOMEM. */
int client_print(const char *text, size_t length) MUST_CHECK;

#endif
