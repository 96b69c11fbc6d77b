/*
 * top.c: the verb "top": shows the job on the whole terminal, anew each second, until q or Ctrl-C.
 * The driver makes the picture (control/top.c); this file has the terminal and the keys. cli.c
 * calls top_live when the job is found.
 *
 * Each picture is one request of its own, like that of any other verb. So a viewer costs the driver
 * nothing between two pictures, and after a restart of the driver the next request reaches the new
 * driver.
 */
#include "driver/cli/verbs.h"

#include "base/limits.h"
#include "driver/cli/client.h"
#include "driver/cli/find_job.h"
#include "driver/control/top.h"
#include "os/clock.h"
#include "os/terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TOP_PERIOD_US TIME_S
/* How long the answer to a drain or undrain stays on the screen, unless a key is pressed. */
#define TOP_ANSWER_US (4 * TIME_S)
/* How long an answer of the driver is waited for. No key is read meanwhile, so a suspended driver
 * must not take longer. */
#define TOP_PATIENCE_US (2 * TIME_S)
#define KEY_ENTER       '\n'
#define KEY_ESCAPE      '\x1b'
#define KEY_BACKSPACE   0x7f
#define HOME            "\x1b[H"
#define CLEAR_LINE      "\x1b[K"
#define CLEAR_BELOW     "\x1b[J"
#define REVERSE         "\x1b[7m"
#define PLAIN           "\x1b[m"

/* One run of "top": the picture that it shows, and the host that the user types. */
struct top_viewer {
    const char *folder;
    struct terminal terminal;
    struct top_screen screen;
    const char *verb; /* "drain" or "undrain": the user types a host for this verb; NULL: no host is
                         typed */
    char host[LIMIT_HOST_NAME_BYTES + sizeof(":4294967295")];
    size_t typed; /* the number of characters in `host` */
    bool end;     /* true: the verb ends */
};

/* Sends one request to the driver of the job, and prints the answer. Returns 0, or the code of a
 * refusal or failure, with its text in err. */
static int top_ask(const struct top_viewer *viewer, const struct msg_ask *ask, struct hvd_err *err)
{
    struct client_outcome outcome = { .code = 0 };
    int rc = client_ask(viewer->folder, ask, TOP_PATIENCE_US, &outcome, NULL, err);

    if (rc == HVD_E_NOTFOUND)
        return cli_no_driver(viewer->folder, err);
    if (!rc && !outcome.answered && !outcome.code)
        return err_set(err, HVD_E_LOST,
                       "the driver has ended while it answered; it is asked again");
    return rc ? rc : outcome.code;
}

/* Shows one picture of the job, which the driver makes in the size of the terminal. The last line
 * has the keys; or the host that the user types; or why there is no picture now. Returns 0, or the
 * code with which the picture failed. */
static int top_show(struct top_viewer *viewer, struct hvd_err *err)
{
    char columns[16], lines[16], from[16];
    const char *args[] = { columns, lines, top_pane_name(viewer->screen.pane), from,
                           viewer->screen.ascii ? "ascii" : "utf8" };
    const struct msg_ask ask = {
        .verb = "top", .args = {args, ARRAY_SIZE(args)}
    };
    char below[2 * TOP_COLUMNS_MAX];
    uint32_t width, height;
    int rc;

    terminal_size(&width, &height);
    width = width < TOP_COLUMNS_MIN ? TOP_COLUMNS_MIN : width;
    width = width > TOP_COLUMNS_MAX ? TOP_COLUMNS_MAX : width;
    /* The last line is not a part of the picture: it has the keys. */
    height = height < TOP_LINES_MIN + 1 ? TOP_LINES_MIN + 1 : height;
    height = height > TOP_LINES_MAX + 1 ? TOP_LINES_MAX + 1 : height;
    snprintf(columns, sizeof(columns), "%" PRIu32, width);
    snprintf(lines, sizeof(lines), "%" PRIu32, height - 1);
    snprintf(from, sizeof(from), "%" PRIu32, viewer->screen.from);
    fputs(HOME, stdout);
    rc = top_ask(viewer, &ask, err);
    if (rc)
        snprintf(below, sizeof(below), "%s", err->text);
    else if (viewer->verb)
        snprintf(below, sizeof(below), "%s which host, or HOST:SLOT? %s_  (Enter, or Esc)",
                 viewer->verb, viewer->host);
    else
        snprintf(below, sizeof(below),
                 "q quit  a all  h hosts  c changes  e events  up/down scroll  d drain  u undrain");
    /* If there is no new picture, the picture before stays, and the last line says why. */
    printf("\x1b[%" PRIu32 ";1H" CLEAR_LINE REVERSE, height);
    below[width - 1] = '\0'; /* a character in the last column would scroll some terminals */
    if (client_print(below, strlen(below)))
        viewer->end = true;
    fputs(PLAIN CLEAR_BELOW, stdout);
    if (fflush(stdout) || ferror(stdout))
        viewer->end = true;
    return rc;
}

/* Sends "drain" or "undrain" for the host that the user has typed. The answer is shown in the last
 * line but one. */
static void top_send(struct top_viewer *viewer)
{
    const char *args[] = { viewer->host };
    const struct msg_ask ask = {
        .verb = viewer->verb, .args = {args, ARRAY_SIZE(args)}
    };
    struct hvd_err err = { .text = "" };
    uint32_t width, height;

    terminal_size(&width, &height);
    printf("\x1b[%" PRIu32 ";1H" CLEAR_BELOW, height > 1 ? height - 1 : 1);
    if (top_ask(viewer, &ask, &err) && client_print(err.text, strlen(err.text)))
        viewer->end = true;
    fflush(stdout);
}

/* Carries out a key: while a host is typed, the key is a part of it; else it changes the picture.
 * `page`: the lines of a half screen, for the page keys. Returns when the next picture is to be
 * shown. */
static int64_t top_key(struct top_viewer *viewer, int key, uint32_t page)
{
    uint32_t *from = &viewer->screen.from;
    bool answered = viewer->verb && key == KEY_ENTER && viewer->typed;

    if (answered)
        top_send(viewer);
    if (key == TERMINAL_END || (key == 'q' && !viewer->verb)) {
        viewer->end = true;
    } else if (viewer->verb && (key == KEY_ESCAPE || key == KEY_ENTER)) {
        viewer->verb = NULL;
    } else if (viewer->verb && (key == KEY_BACKSPACE || key == '\b')) {
        viewer->typed -= viewer->typed > 0;
    } else if (viewer->verb) {
        if (key > ' ' && key < KEY_BACKSPACE && viewer->typed + 1 < sizeof(viewer->host))
            viewer->host[viewer->typed++] = (char)key;
    } else if (key == 'd' || key == 'u') {
        viewer->verb = key == 'd' ? "drain" : "undrain";
        viewer->typed = 0;
    } else if (key == TERMINAL_DOWN || key == 'j' || key == TERMINAL_PAGE_DOWN || key == ' ') {
        *from += key == TERMINAL_DOWN || key == 'j' ? 1 : page;
    } else if (key == TERMINAL_UP || key == 'k' || key == TERMINAL_PAGE_UP) {
        page = key == TERMINAL_PAGE_UP ? page : 1;
        *from -= *from > page ? page : *from;
    } else {
        for (size_t i = 0; i < TOP_PANE_COUNT; i++)
            if (key == top_pane_name((enum top_pane)i)[0]) {
                viewer->screen.pane = (enum top_pane)i;
                *from = 0;
            }
    }
    if (*from > LIMIT_HOSTS)
        *from = LIMIT_HOSTS;
    viewer->host[viewer->typed] = '\0';
    return clock_now_us() + (answered ? TOP_ANSWER_US : 0);
}

/* Shows pictures until q, Ctrl-C, or the end of the terminal. If the first picture fails, the verb
 * fails with that error. A later failure is only shown, because the driver may come back. */
static int top_live(struct cli_request *request, const char *folder, struct hvd_err *err)
{
    struct top_viewer viewer = { .folder = folder };
    struct hvd_err later;
    int64_t next_us;
    uint32_t columns, lines;
    int key;
    int rc = terminal_open(&viewer.terminal, err);

    (void)request;
    if (rc)
        return rc;
    viewer.screen.ascii = !terminal_is_utf8();
    rc = top_show(&viewer, err);
    while (!rc && !viewer.end) {
        next_us = clock_now_us() + TOP_PERIOD_US;
        while (!viewer.end && next_us > clock_now_us()) {
            key = terminal_key(&viewer.terminal, next_us);
            terminal_size(&columns, &lines);
            if (key != TERMINAL_TIMEOUT)
                next_us = top_key(&viewer, key, lines / 2);
        }
        if (!viewer.end)
            (void)top_show(&viewer, &later);
    }
    terminal_close(&viewer.terminal);
    return rc;
}

const struct cli_verb cli_top = {
    .name = "top",
    .words = "",
    .about = "Shows the job on the whole terminal, anew each second: its size and pauses over "
             "time, hosts, changes, events. The keys are in the last line.",
    .live = top_live,
};
