/*
 * top.c: draws the picture of a job for "hvd-elastic top". control.c calls top_draw for each
 * picture, about once in a second for each viewer. The picture is made from the view alone, so the
 * same view always gives the same picture.
 *
 * Each line goes through top_put, which cuts or pads the line to the width of the screen, and
 * replaces each character that may be wider or narrower than one column of a terminal. So no name
 * or text of a job can break the picture.
 */
#include "driver/control/top.h"

#include "base/limits.h"
#include "base/panic.h"
#include "base/text.h"
#include "base/time.h"
#include "driver/control/commits.h"
#include "driver/control/reports.h"
#include "os/log_time.h"
#include "proto/commit.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TOP_LEVELS 8  /* the heights of a bar, without 0 */
#define TOP_LABEL  9  /* the columns of the label before a row of bars */
#define TOP_LEGEND 24 /* the columns of the legend behind a row of bars */
#define TOP_SHARE  4  /* the values that the program reports get at most a quarter of the lines */
/* a line with its NUL; a character that is drawn takes at most three bytes */
#define TOP_LINE_BYTES (3 * TOP_COLUMNS_MAX + 1)

/* The picture that is being drawn. */
struct top {
    const struct core_view *view;
    const struct table_facts *facts;
    const struct events *events;
    const struct top_screen *screen;
    struct buf *out;
    uint32_t lines_left; /* how many lines of the screen are not drawn yet */
    uint32_t skip; /* how many rows of the list are still to be left out, because they are scrolled
                      away */
    int rc;
};

static const char *const top_panes[TOP_PANE_COUNT] = { "all", "hosts", "changes", "events" };

const char *top_pane_name(enum top_pane pane)
{
    return top_panes[pane];
}

/* Reads the arguments of the request "top": columns, lines, the pane, how many lines are scrolled
 * away, and "utf8" or "ascii". */
int top_screen_parse(const char *const args[TOP_ARGS], struct top_screen *ret_screen,
                     struct hvd_err *err)
{
    static const char *const names[] = { "the columns of the screen", "the lines of the screen",
                                         NULL, "the lines that are scrolled away" };
    static const uint64_t least[] = { TOP_COLUMNS_MIN, TOP_LINES_MIN, 0, 0 };
    static const uint64_t most[] = { TOP_COLUMNS_MAX, TOP_LINES_MAX, 0, LIMIT_HOSTS };
    uint64_t number[ARRAY_SIZE(names)] = { 0 };
    int rc = 0;

    for (size_t i = 0; i < ARRAY_SIZE(names) && !rc; i++)
        if (names[i])
            rc = text_parse_u64((struct span){ args[i], strlen(args[i]) }, least[i], most[i],
                                names[i], &number[i], err);
    if (rc)
        return rc;
    *ret_screen = (struct top_screen){ .columns = (uint32_t)number[0],
                                       .lines = (uint32_t)number[1],
                                       .from = (uint32_t)number[3],
                                       .pane = TOP_PANE_COUNT,
                                       .ascii = strcmp(args[4], "utf8") != 0 };
    for (size_t i = 0; i < TOP_PANE_COUNT; i++)
        if (!strcmp(top_panes[i], args[2]))
            ret_screen->pane = (enum top_pane)i;
    if (ret_screen->pane == TOP_PANE_COUNT) {
        char quoted[TEXT_QUOTE_MAX];

        text_quote(args[2], strlen(args[2]), quoted);
        return err_set(err, HVD_E_INVAL, "%s: no such list; all, hosts, changes and events are",
                       quoted);
    }
    return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Returns how many bytes the character at `at` has, if it takes one column on each terminal:
 * printable ASCII, Latin letters with accents, and the bars of this file. 0: another character, or
 * a byte that is no UTF-8. */
static size_t top_char_bytes(const char *at)
{
    const unsigned char *byte = (const unsigned char *)at;

    if (byte[0] >= ' ' && byte[0] < 0x7f)
        return 1;
    if (byte[0] == 0xc2 && byte[1] >= 0xa1 && byte[1] <= 0xbf && byte[1] != 0xad)
        return 2;
    if (byte[0] >= 0xc3 && byte[0] <= 0xc9 && (byte[1] & 0xc0) == 0x80)
        return 2;
    if (byte[0] == 0xe2 && byte[1] == 0x96 && byte[2] >= 0x81 && byte[2] <= 0x88)
        return 3;
    return 0;
}

/* Draws one line, cut or padded to the width of the screen. Does nothing if the picture has all its
 * lines. */
static void top_put(struct top *top, const char *text)
{
    uint32_t column = 0;

    if (!top->lines_left || top->rc)
        return;
    top->lines_left--;
    for (; *text && column < top->screen->columns && !top->rc; column++) {
        size_t bytes = top_char_bytes(text);

        top->rc = buf_append(top->out, bytes ? text : "?", bytes ? bytes : 1);
        /* a character that is not shown becomes one question mark, for all its bytes */
        for (text += bytes ? bytes : 1; !bytes && ((unsigned char)*text & 0xc0) == 0x80;)
            text++;
    }
    if (!top->rc)
        top->rc = buf_printf(top->out, "%*s\n", (int)(top->screen->columns - column), "");
}

/* Draws one line outside a list, in the manner of printf. */
static void PRINTF_LIKE(2, 3) top_line(struct top *top, const char *format, ...)
{
    char line[TOP_LINE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    top_put(top, line);
}

/* Draws one row of a list, in the manner of printf, unless the row is scrolled away. */
static void PRINTF_LIKE(2, 3) top_row(struct top *top, const char *format, ...)
{
    char line[TOP_LINE_BYTES];
    va_list args;

    if (top->skip) {
        top->skip--;
        return;
    }
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    top_put(top, line);
}

/* Returns the time from then_us until the view as text for operators, in whole seconds. */
static const char *top_since(const struct top *top, int64_t then_us, char text[TIME_TEXT_MAX])
{
    int64_t us = top->facts->now_us - then_us;

    return time_format(us > 0 ? us - us % TIME_S : 0, text);
}

/* ---- the head -------------------------------------------------------------------------------- */

/* Draws the head of the picture, what the job does: two lines, and a line each for commits, for
 * workers that are silent or behind, for what the job waits for, and for notices, if there are any.
 */
static void top_head(struct top *top)
{
    const struct core_view *view = top->view;
    const struct table_facts *facts = top->facts;
    char since[TIME_TEXT_MAX], fails[TIME_TEXT_MAX], next[48] = "", most[24] = "or more";
    char commits[COMMITS_TEXT_MAX], names[COMMITS_NAMES_MAX];

    if (facts->orphan)
        top_line(top, "job %s: orphaned, no driver lives", facts->job);
    else
        top_line(top, "job %s: %s    driver pid %" PRIu64 ", term %" PRIu64 ", up %s", facts->job,
                 job_state_name(view->job), facts->pid, view->term,
                 top_since(top, facts->started_us, since));
    if (view->next)
        snprintf(next, sizeof(next), ", next is round %" PRIu64, view->next);
    if (facts->max_np < LIMIT_WORKERS)
        snprintf(most, sizeof(most), "to %u", facts->max_np);
    if (view->round)
        top_line(top,
                 "round %" PRIu64 ": size %zu of %u %s, from commit %" PRIu64 ".%u, %u resets%s",
                 view->round, view->member_count, facts->min_np, most,
                 COMMIT_ROUND_OF(view->commit), COMMIT_PLACE_OF(view->commit), view->resets, next);
    else
        top_line(top, "round: none yet; the job begins with %u workers%s", facts->np, next);
    if (*commits_text(view, facts, commits))
        top_line(top, "commits: %s", commits);
    if (*commits_names(view, facts, true /* those that are silent */, names))
        top_line(top, "silent: %s", names);
    if (*commits_names(view, facts, false /* those that are behind */, names))
        top_line(top, "behind: %s", names);
    if (*view->waiting_for && !facts->orphan)
        top_line(top, "waits for %s", view->waiting_for);
    else if (!facts->orphan && view->shortage.since_us != TIME_NEVER)
        top_line(top, "too few workers for %s; the job needs at least %u, and fails in %s",
                 top_since(top, view->shortage.since_us, since), facts->min_np,
                 time_brief(view->shortage.fails_us - facts->now_us, fails));
    if (view->notices.ended + view->notices.under_way)
        top_line(top, "notices: %" PRIu32 " of %" PRIu32 " honoured, %" PRIu32 " under way",
                 view->notices.honoured, view->notices.ended, view->notices.under_way);
}

/* Draws a row of `count` bars, whose heights are 0 to TOP_LEVELS, with a label before and a legend
 * behind them. */
static void top_bars(struct top *top, const char *label, const uint8_t *levels, uint32_t count,
                     const char *legend)
{
    static const char *const utf8[] = { " ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                        "\u2585", "\u2586", "\u2587", "\u2588" };
    static const char *const ascii[] = { " ", ".", ":", "-", "=", "+", "*", "#", "@" };
    char line[TOP_LINE_BYTES];
    size_t used = (size_t)snprintf(line, sizeof(line), "%-*.*s", TOP_LABEL, TOP_LABEL, label);

    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%s",
                                 (top->screen->ascii ? ascii : utf8)[levels[i]]);
    snprintf(line + used, sizeof(line) - used, "  %s", legend);
    top_put(top, line);
}

/* Draws two rows of bars over the time that the view knows of: the size of the job, and the pauses
 * of its changes. A column is an equal part of that time: its bars are the size at the end of this
 * part, and the longest pause in it. */
static void top_history(struct top *top)
{
    const struct core_view *view = top->view;
    uint8_t sizes[TOP_COLUMNS_MAX] = { 0 }, pauses[TOP_COLUMNS_MAX] = { 0 };
    uint32_t count = top->screen->columns - TOP_LABEL - TOP_LEGEND;
    uint32_t largest = 1, size = 0, level;
    int64_t begin_us, span_us, pause_us, limit_us, longest_us = 0;
    char legend[64], text[TIME_TEXT_MAX];
    size_t change = 0;

    if (top->screen->columns <= TOP_LABEL + TOP_LEGEND || !view->change_count || top->facts->orphan)
        return;
    for (size_t i = 0; i < view->change_count; i++)
        if (view->changes[i].to > largest)
            largest = view->changes[i].to;
    begin_us = view->changes[0].ended_us;
    span_us = top->facts->now_us - begin_us;
    if (span_us < TIME_S)
        span_us = TIME_S;
    for (uint32_t i = 0; i < count; i++) {
        int64_t end_us = begin_us + span_us / count * (i + 1);

        for (; change < view->change_count &&
               (view->changes[change].ended_us <= end_us || i + 1 == count);
             change++) {
            size = view->changes[change].to;
            /* the pause of the first round is the start of the job, and is not drawn */
            if (!view->changes[change].from)
                continue;
            pause_us = view->changes[change].pause_us;
            /* the bar of a pause is 1 high below 1 ms, and one more at 1 ms, 3 ms, 10 ms ... 3 s */
            level = pause_us > 0;
            for (limit_us = TIME_MS; level && level < TOP_LEVELS && pause_us >= limit_us; level++)
                limit_us = level % 2 ? 3 * limit_us : limit_us / 3 * 10;
            if (level > pauses[i])
                pauses[i] = (uint8_t)level;
            if (pause_us > longest_us)
                longest_us = pause_us;
        }
        sizes[i] = (uint8_t)((size * TOP_LEVELS + largest - 1) / largest);
    }
    snprintf(legend, sizeof(legend), "%u at most, %s", largest, top_since(top, begin_us, text));
    top_bars(top, "size", sizes, count, legend);
    snprintf(legend, sizeof(legend), "longest %s", time_brief(longest_us, text));
    top_bars(top, "pauses", pauses, count, longest_us ? legend : "none");
}

/* Draws a row of bars for each value that the program reports. A column is an equal part of the
 * time since the first point. The bar of a column is the newest value in this part; its height is
 * scaled between the least value (1) and the largest (TOP_LEVELS). A value that is no number leaves
 * its column empty. */
static void top_reports(struct top *top)
{
    const struct view_reports *reports = &top->view->reports;
    uint32_t most = top->screen->lines / TOP_SHARE;
    uint32_t count = top->screen->columns - TOP_LABEL - TOP_LEGEND;
    char legend[REPORTS_NUMBER_MAX + TIME_TEXT_MAX + 8], number[REPORTS_NUMBER_MAX];
    char ago[TIME_TEXT_MAX];

    if (top->screen->columns <= TOP_LABEL + TOP_LEGEND || top->facts->orphan)
        return;
    for (size_t k = 0; k < reports->count && k < most; k++) {
        const struct view_report *report = &reports->items[k];
        const struct view_point *points = report->points;
        int64_t begin_us = points[0].at_us, span_us = top->facts->now_us - begin_us;
        double least = INFINITY, largest = -INFINITY;
        uint8_t levels[TOP_COLUMNS_MAX] = { 0 };
        size_t at = 0;

        for (size_t i = 0; i < report->point_count; i++)
            if (isfinite(points[i].value)) {
                least = points[i].value < least ? points[i].value : least;
                largest = points[i].value > largest ? points[i].value : largest;
            }
        if (span_us < TIME_S)
            span_us = TIME_S;
        for (uint32_t i = 0; i < count; i++) {
            int64_t end_us = begin_us + span_us / count * (i + 1);
            double part = 0;

            while (at + 1 < report->point_count &&
                   (points[at + 1].at_us <= end_us || i + 1 == count))
                at++;
            if (!isfinite(points[at].value))
                continue;
            if (largest > least) /* both are halved first, because the difference of two doubles may
                                    overflow */
                part = (points[at].value / 2 - least / 2) / (largest / 2 - least / 2);
            levels[i] = (uint8_t)(1 + part * (TOP_LEVELS - 1));
        }
        snprintf(legend, sizeof(legend), "%s, %s ago", reports_brief(report->value, number),
                 top_since(top, report->at_us, ago));
        top_bars(top, report->name, levels, count, legend);
    }
    if (reports->count > most)
        top_line(top, "... and %zu more values: hvd-elastic status has all", reports->count - most);
}

/* ---- the lists ------------------------------------------------------------------------------- */

/* Draws the list of hosts, each with its workers by state. The loop visits the hosts twice. The
 * first time it draws those to look at (`special`): the driver does not use them fully, or not all
 * of their workers train. The second time it draws the others. */
static void top_hosts(struct top *top)
{
    const struct core_view *view = top->view;
    int width = (int)sizeof("HOST") - 1, most = (int)top->screen->columns / 3;

    for (size_t i = 0; i < view->host_count; i++)
        if ((int)strlen(view->hosts[i].name) > width)
            width = (int)strlen(view->hosts[i].name);
    if (width > most)
        width = most;
    top_line(top, "%-*.*s  SLOTS  %-8s  %-18s  WHY NOT MORE", width, width, "HOST", "AGENT",
             "WORKERS");
    for (size_t i = 0; i < 2 * view->host_count; i++) {
        const struct view_host *host = &view->hosts[i % view->host_count];
        size_t counts[WORKER_STATE_COUNT] = { 0 }, used = 0;
        char workers[160] = "";
        bool special = *host->why || host->draining || !host->listed ||
                       (host->worker_count && host->agent != AGENT_THERE);

        for (size_t k = 0; k < host->worker_count; k++) {
            counts[host->workers[k].state]++;
            special = special || host->workers[k].silent || host->workers[k].behind;
        }
        special = special || counts[WORKER_MEMBER] < host->worker_count;
        if (special != (i < view->host_count))
            continue;
        for (size_t k = 0; k < WORKER_STATE_COUNT; k++)
            if (counts[k] && used < sizeof(workers))
                used += (size_t)snprintf(workers + used, sizeof(workers) - used, "%s%zu %s",
                                         used ? ", " : "", counts[k],
                                         worker_state_name((enum worker_state)k));
        top_row(top, "%-*.*s  %5u  %-8s  %-18s  %s", width, width, host->name, host->slots,
                agent_state_name(host->agent), workers, host->why);
    }
}

/* Draws the list of changes of the membership, the newest first. */
static void top_changes(struct top *top)
{
    const struct core_view *view = top->view;

    top_line(top, "%6s  %-8s  %-9s  %6s  %7s  %7s  %7s  %7s  %7s", "ROUND", "CAUSE", "SIZE", "AGO",
             "PAUSE", "AGREE", "REBUILD", "STATE", "STEP");
    for (size_t i = view->change_count; i > 0; i--) {
        const struct view_change *change = &view->changes[i - 1];
        char sizes[32], ago[TIME_TEXT_MAX], pause[TIME_TEXT_MAX], agree[TIME_TEXT_MAX];
        char rebuild[TIME_TEXT_MAX], state[TIME_TEXT_MAX], step[TIME_TEXT_MAX];

        snprintf(sizes, sizeof(sizes), "%u -> %u", change->from, change->to);
        top_row(top, "%6" PRIu64 "  %-8s  %-9s  %6s  %7s  %7s  %7s  %7s  %7s", change->round,
                change_cause_name(change->cause), sizes, top_since(top, change->ended_us, ago),
                time_brief(change->pause_us, pause), time_brief(change->agree_us, agree),
                time_brief(change->rebuild_us, rebuild), time_brief(change->state_us, state),
                time_brief(change->first_step_us, step));
    }
}

/* Called by events_each for each event: draws it. Always goes on; top_put ignores lines for which
 * there is no room. */
static bool top_event(void *arg, const struct event_line *line)
{
    struct top *top = arg;
    char moment[TIME_STAMP_MAX];

    top_row(top, "%s %s", log_time_text(line->wall_us, moment), line->text);
    return true;
}

/* Draws the newest events that fit on the screen, the newest last. top->skip says how many of the
 * newest are scrolled away. */
static void top_events(struct top *top)
{
    size_t lines = top->lines_left ? top->lines_left - 1 : 0;
    size_t newer = top->skip;

    top_line(top, "EVENTS");
    top->skip = 0;
    /* Asks for as many older events as are scrolled away: they are drawn first and fill the screen,
     * and the newest ones find no room. */
    if (top->events)
        events_each(top->events, lines + newer, top_event, top);
}

/* Draws a list of `rows` rows with the function `draw`, in at most `lines` lines with its heading.
 * If not all rows fit, the last line says how many more there are. */
static void top_list(struct top *top, void (*draw)(struct top *), size_t rows, uint32_t lines)
{
    uint32_t lines_left = top->lines_left;
    size_t hidden;

    if (lines > lines_left)
        lines = lines_left;
    if (lines < 2)
        return;
    hidden = rows + 1 > lines ? rows + 2 - lines : 0;
    top->lines_left = lines - (hidden > 0);
    draw(top);
    lines_left -= lines - (hidden > 0) - top->lines_left;
    top->lines_left = lines_left;
    if (hidden)
        top_line(top, "... and %zu more", hidden);
}

/* Draws the head of the picture, then the list of the pane, or parts of all lists (TOP_ALL). After
 * a failure `out` is cut back to what it had before. */
int top_draw(const struct core_view *view, const struct table_facts *facts,
             const struct events *events, const struct top_screen *screen, struct buf *out)
{
    struct top top = { .view = view,
                       .facts = facts,
                       .events = events,
                       .screen = screen,
                       .out = out,
                       .lines_left = screen->lines,
                       .skip = screen->pane == TOP_ALL ? 0 : screen->from };
    size_t before = out->length, hosts = view->host_count;
    uint32_t share, spare;

    ASSERT(screen->columns <= TOP_COLUMNS_MAX);
    top_head(&top);
    top_history(&top);
    top_reports(&top);
    top_put(&top, "");
    switch (screen->pane) {
    case TOP_ALL:
        /* a third of the lines is for the hosts; half of what they do not need is for the changes;
         * all the rest is for the events */
        share = top.lines_left / 3;
        spare = hosts + 2 < share ? share - (uint32_t)(hosts + 2) : 0;
        top_list(&top, top_hosts, hosts, share);
        top_put(&top, "");
        if (view->change_count) {
            top_list(&top, top_changes, view->change_count, share + spare / 2);
            top_put(&top, "");
        }
        if (top.lines_left > 1)
            top_events(&top);
        break;
    case TOP_HOSTS: top_hosts(&top); break;
    case TOP_CHANGES: top_changes(&top); break;
    case TOP_EVENTS: top_events(&top); break;
    case TOP_PANE_COUNT: break;
    }
    while (top.lines_left && !top.rc)
        top_put(&top, "");
    if (top.rc && out->data) {
        out->length = before;
        out->data[before] = '\0';
    }
    return top.rc;
}
