/*
 * fake_driver.h: a driver in a test, for real agents. It listens, welcomes an agent, sends what the
 * test tells it, and notes each message that it receives as a line (msg_describe), and beside that
 * the output of the workers.
 *
 * Every wait is for an event, and fails after FAKE_PATIENCE_S.
 */
#ifndef TESTS_LIB_FAKE_DRIVER_H
#define TESTS_LIB_FAKE_DRIVER_H

#include "base/buf.h"
#include "base/trace.h"
#include "proto/msg.h"
#include "wire/listener.h"

#include <sys/types.h>

#define FAKE_PATIENCE_S 100
#define FAKE_KEY        "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

struct fake_driver {
    struct event_base *base;
    struct tls *tls;
    struct listener *listener;
    struct conn *conn; /* to its one agent */
    uint64_t term;
    int64_t grace_us; /* sent in WELCOME; 0: left out */
    bool silent;      /* true: accepts connections and sends nothing */
    struct buf heard; /* one line for each message, and "closed" */
    size_t seen;      /* how much of heard fake_wait has used */
    struct buf printed;
};

/* Makes an event base when base is NULL. 0 or a code. */
int fake_init(struct fake_driver *fake, struct event_base *base, const char *job,
              uint64_t term) MUST_CHECK;
void fake_release(struct fake_driver *fake); /* frees the event base too */
void fake_close(struct fake_driver *fake);   /* the driver dies: its port is closed */

void fake_say(struct fake_driver *fake, const struct msg *msg);
void fake_launch(struct fake_driver *fake, uint64_t incarnation, uint32_t slot,
                 const char *const *argv);
void fake_shell(struct fake_driver *fake, uint64_t incarnation, uint32_t slot, const char *command);
void fake_kill(struct fake_driver *fake, uint64_t incarnation, int64_t grace_us);
void fake_stop(struct fake_driver *fake, int64_t grace_us);

/* Runs the event loop until the text after the last match contains the part. */
bool fake_wait(struct fake_driver *fake, const char *part);
/* The same for the output of workers; the whole output is searched. */
bool fake_wait_printed(struct fake_driver *fake, const char *part);
bool fake_heard(const struct fake_driver *fake, const char *part);
/* The number after "name=" in the output of workers; 0: there is none. */
pid_t fake_printed_pid(const struct fake_driver *fake, const char *name);

/* Runs hvd-agent with this text on standard input. Returns the exit status; out and err, of size
 * bytes each, receive its output. */
int fake_run_agent(const char *program, const char *text, char *out, char *err, size_t size);
/* The same for any command line. */
int fake_run_program(const char *const *argv, const char *text, char *out, char *err, size_t size);

/* Waits until the process has ended. */
bool fake_wait_end(pid_t pid);
/* Waits until no process is left that this test has started, directly or not. Queued messages are
 * sent meanwhile. */
bool fake_wait_childless(struct fake_driver *fake);
/* The name of the socket of the agent of this job and host; NULL: there is none. */
const char *fake_socket_name(const char *job, const char *host);

#endif
