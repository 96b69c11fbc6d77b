/*
 * fake_driver.h: a driver in a test, for real agents: it listens, welcomes, says what it is told to
 * say, and notes what it hears as lines (msg_describe), with what workers print beside them.
 *
 * Every wait is for something that happens, and fails after FAKE_PATIENCE_S.
 */
#ifndef TESTS_LIB_FAKE_DRIVER_H
#define TESTS_LIB_FAKE_DRIVER_H

#include "base/buf.h"
#include "base/trace.h"
#include "proto/msg.h"
#include "wire/listener.h"

#include <sys/types.h>

#define FAKE_PATIENCE_S 20
#define FAKE_KEY        "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

struct fake_driver {
    struct event_base *base;
    struct tls *tls;
    struct listener *listener;
    struct conn *conn; /* of its one agent */
    uint64_t term;
    int64_t grace_us; /* said in the welcome; 0: nothing */
    bool silent;      /* it takes connections, and says nothing */
    struct buf heard; /* a line for each message, and "closed" */
    size_t seen;      /* of heard, by fake_wait */
    struct buf printed;
};

/* A base that is NULL is made. 0 or a code. */
int fake_init(struct fake_driver *fake, struct event_base *base, const char *job,
              uint64_t term) MUST_CHECK;
void fake_release(struct fake_driver *fake); /* with its base */
void fake_close(struct fake_driver *fake);   /* it dies: nobody listens there any more */

void fake_say(struct fake_driver *fake, const struct msg *msg);
void fake_launch(struct fake_driver *fake, uint64_t incarnation, uint32_t slot,
                 const char *const *argv);
void fake_shell(struct fake_driver *fake, uint64_t incarnation, uint32_t slot, const char *command);
void fake_kill(struct fake_driver *fake, uint64_t incarnation, int64_t grace_us);
void fake_stop(struct fake_driver *fake, int64_t grace_us);

/* Runs the loop until something after what was waited for last holds the part. */
bool fake_wait(struct fake_driver *fake, const char *part);
/* The same for what workers print, all of it. */
bool fake_wait_printed(struct fake_driver *fake, const char *part);
bool fake_heard(const struct fake_driver *fake, const char *part);
/* The number after "name=" in what workers have printed; 0. */
pid_t fake_printed_pid(const struct fake_driver *fake, const char *name);

/* Runs hvd-agent with this text on standard input: its exit status, with what it says in out and
 * err (each of size bytes). */
int fake_run_agent(const char *program, const char *text, char *out, char *err, size_t size);

/* Waits until it has ended. */
bool fake_wait_end(pid_t pid);
/* Waits until no process is left that has been started from here, however indirectly. What was said
 * goes out meanwhile. */
bool fake_wait_childless(struct fake_driver *fake);
bool fake_socket_exists(const char *job, const char *host);

#endif
