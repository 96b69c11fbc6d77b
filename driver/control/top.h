/*
 * top.h: the picture of a job that "hvd-elastic top" shows: the state of the job, its size and its
 * pauses over time, hosts, changes and events, as a block of lines for a screen of a given size.
 *
 * control.c asks for the picture, with the size that the client has. The picture never has more
 * lines or columns than asked for, with any bytes in the names and texts of the job.
 */
#ifndef DRIVER_CONTROL_TOP_H
#define DRIVER_CONTROL_TOP_H

#include "driver/control/events.h"
#include "driver/control/tables.h"

#define TOP_COLUMNS_MIN 20
#define TOP_COLUMNS_MAX 500
#define TOP_LINES_MIN   3
#define TOP_LINES_MAX   300

enum top_pane {
    TOP_ALL,     /* each of the three lists below gets a part of the lines */
    TOP_HOSTS,   /* all lines below the head are for the hosts */
    TOP_CHANGES, /* all lines below the head are for the changes */
    TOP_EVENTS,  /* all lines below the head are for the events */
    TOP_PANE_COUNT
};

struct top_screen {
    uint32_t columns, lines;
    enum top_pane pane;
    uint32_t from; /* how many lines of the list are scrolled away */
    bool ascii;    /* true: draw bars with ASCII characters, for a terminal that is not UTF-8 */
};

/* Returns "all", "hosts", "changes" or "events". */
const char *top_pane_name(enum top_pane pane);

/* Reads COLUMNS, LINES, the name of a pane, FROM and "utf8" or "ascii" from the arguments of a
 * request. Returns 0, HVD_E_INVAL, or HVD_E_LIMIT for a size that no screen has. */
#define TOP_ARGS 5
int top_screen_parse(const char *const args[TOP_ARGS], struct top_screen *ret_screen,
                     struct hvd_err *err) MUST_CHECK;

/* Appends exactly screen->lines lines of exactly screen->columns columns to `out`. events NULL: no
 * events are drawn. Returns 0, HVD_E_NOMEM, or HVD_E_LIMIT if the text would be longer than
 * out->max. */
int top_draw(const struct core_view *view, const struct table_facts *facts,
             const struct events *events, const struct top_screen *screen,
             struct buf *out) MUST_CHECK;

#endif
