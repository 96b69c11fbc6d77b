/*
 * blame.h: whether the lines of the driver's log that have the level warning or error name what a
 * fault has hit, and accuse nothing else.
 *
 * The row of a fault (fault.h) has texts that the log must have, separated by "; ". In a text
 * {worker}, {host}, {driver} and {thing} stand for the victims of that kind: the text is looked for
 * once for each of them. A text without such a word is looked for as it is.
 *
 *     "{worker}: killed; {host}: the connection to its agent is gone"
 */
#ifndef TESTS_CHAOS_BLAME_H
#define TESTS_CHAOS_BLAME_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BLAME_NAME    160
#define BLAME_VICTIMS 64
/* The name has to be within so many bytes of the message: in the first line of a wide terminal. */
#define BLAME_WITHIN 200

enum blame_kind {
    BLAME_WORKER, /* "127.0.0.2:1#17" */
    BLAME_HOST,   /* "127.0.0.2" */
    BLAME_DRIVER, /* its pid */
    BLAME_THING,  /* a file, a server, a port */
    BLAME_KINDS
};

struct blame_victim {
    enum blame_kind kind;
    char name[BLAME_NAME];
    /* A process that the fault has harmed and that may survive: the log names it only if it has
     * ended. 0: the log names the victim in any case. */
    pid_t may_live;
    bool allowed; /* a line may name the victim, and none has to */
    bool earlier; /* of the fault before: a line may name the victim still */
};

struct blame {
    struct blame_victim victims[BLAME_VICTIMS];
    uint32_t count;
};

/* Adds a victim; may_live 0, or the pid of a process that may survive. */
void blame_add(struct blame *blame, enum blame_kind kind, const char *name, pid_t may_live);

/* Adds a victim that the log may name, and need not. */
void blame_allow(struct blame *blame, enum blame_kind kind, const char *name);

/* Before a fault: its victims are those of the fault before. `settled`: no line about these comes
 * any more, and they are forgotten. */
void blame_begin(struct blame *blame, bool settled);

/* Looks for all texts of `names` in the log, a text of whole lines. 0, with how many texts were
 * found; HVD_E_MISMATCH: the text says what is not named. */
int blame_find(const struct blame *blame, const char *names, const char *log, uint32_t *ret_found,
               struct hvd_err *err) MUST_CHECK;

/* HVD_E_MISMATCH: a warning or an error has one of these names, which the fault has not hit. */
int blame_acquit(const struct blame *blame, const char *const *innocents, size_t count,
                 const char *log, struct hvd_err *err) MUST_CHECK;

#endif
