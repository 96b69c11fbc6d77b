/*
 * terminal.h: the whole terminal as a screen of this program, and its keys. For programs with one
 * thread that show a picture and wait for keys ("hvd-elastic top").
 */
#ifndef OS_TERMINAL_H
#define OS_TERMINAL_H

#include "base/err.h"

#include <signal.h>
#include <termios.h>

struct terminal {
    struct termios before; /* the settings of the terminal before; they are restored at the end */
    sigset_t mask_before;  /* the blocked signals before, which are restored at the end */
    int signals;           /* a signalfd: the signals that change or end the screen */
};

/* The events that terminal_key returns besides the byte of a key. */
enum terminal_event {
    TERMINAL_TIMEOUT = -1, /* no key in time */
    TERMINAL_RESIZED = -2, /* the terminal has another size, or shows this program again */
    TERMINAL_END = -3,     /* Ctrl-C, a signal to end, or the terminal is gone */
    TERMINAL_UP = -4,
    TERMINAL_DOWN = -5,
    TERMINAL_PAGE_UP = -6,
    TERMINAL_PAGE_DOWN = -7,
    TERMINAL_OTHER = -8 /* a key that this file does not know */
};

/*
 * Takes the terminal of standard input and output: an empty screen without a cursor, keys that come
 * without Enter and are not shown. From now on the signals INT, TERM, HUP, WINCH and TSTP come by
 * terminal_key alone. HVD_E_STATE: input or output is not a terminal. HVD_E_LIMIT: no descriptor is
 * left.
 */
int terminal_open(struct terminal *terminal, struct hvd_err *err) MUST_CHECK;

/* Restores the settings of the terminal, and what it showed before. */
void terminal_close(struct terminal *terminal);

/* Gives the size of the terminal; 80 columns and 24 lines if the terminal does not know. */
void terminal_size(uint32_t *ret_columns, uint32_t *ret_lines);

/* True: the locale says that the terminal shows UTF-8. */
bool terminal_is_utf8(void);

/* Waits for a key until the moment until_us of the monotonic clock. Returns the byte of the key, or
 * a value of enum terminal_event. Ctrl-Z stops the program, with the terminal as it was before,
 * until the program is continued. */
int terminal_key(struct terminal *terminal, int64_t until_us);

#endif
