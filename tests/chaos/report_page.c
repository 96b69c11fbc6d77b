#include "base/mem.h"
#include "base/time.h"
#include "tests/chaos/page.h"
#include "tests/chaos/plot.h"
#include "tests/chaos/report.h"
#include "tests/chaos/tally.h"

#include <inttypes.h>
#include <string.h>

/* The plot: from above to below */
#define SIZE_TOP     14
#define SIZE_BOTTOM  150
#define PAUSE_TOP    180
#define PAUSE_BOTTOM 300
#define LANES_TOP    318
#define LANE         15

#define GAPS_MOST    60 /* faults up to which standing still can be seen beside the size */
#define STRIP_WIDTH  180
#define STRIP_HEIGHT 20
#define BAR_WIDTH    90

struct view {
    struct page page;
    const struct record *record;
    const struct steps *steps;
    struct tally tally;
    struct levels levels;
    struct plot plot;
    unsigned decades; /* of pauses */
};

static const char *brief(int64_t us, char text[TIME_TEXT_MAX])
{
    return us < TIME_MS ? "&lt;1ms" : time_brief(us, text);
}

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- in words -------------------------------------------------------------------------------- */

static const struct record_fault *worst_pause(const struct record *record)
{
    const struct record_fault *worst = &record->faults[0];

    for (size_t i = 1; i < record->fault_count; i++)
        if (record->faults[i].pause_us > worst->pause_us)
            worst = &record->faults[i];
    return worst;
}

static void show_verdict(struct view *view)
{
    const struct record *record = view->record;
    const struct tally_times *pause = &view->tally.all.pause;
    bool good = record->violations == 0 && record->hangs == 0;
    const char *verdict = !good                ? "Not everything held."
                          : record->broken_off ? "Broken off; nothing was lost until then."
                                               : "Nothing was lost.";
    char median[TIME_TEXT_MAX];
    char most[TIME_TEXT_MAX];

    page_put(&view->page, "<h1>hvd-elastic under attack: ");
    page_text(&view->page, record->title);
    page_put(&view->page,
             "</h1>\n<p class=\"verdict\"><span class=\"%s\">%s</span> "
             "%zu fault%s, %zu violation%s, %zu hang%s.",
             good ? "good" : "bad", verdict, record->fault_count, plural(record->fault_count),
             record->violations, plural(record->violations), record->hangs, plural(record->hangs));
    if (record->fault_count > 0) {
        page_put(&view->page,
                 " After a fault the training stood still for %s (median), at most "
                 "%s (",
                 brief(pause->median_us, median), brief(pause->most_us, most));
        page_text(&view->page, worst_pause(record)->name);
        page_put(&view->page, ").");
    }
    page_put(&view->page, "</p>\n");
}

static void show_figures(struct view *view)
{
    const struct record *record = view->record;
    const struct tally_kind *all = &view->tally.all;
    int64_t took_us = record->ended_us - record->began_us;
    char text[4][TIME_TEXT_MAX];

    page_put(&view->page,
             "<dl><div><dt>it took</dt><dd>%s</dd></div>"
             "<div><dt>stood still, together</dt><dd>%s (%.1f %%)</dd></div>"
             "<div><dt>whole again after (median)</dt><dd>%s</dd></div>",
             time_brief(took_us, text[0]), time_brief(all->pause.sum_us, text[1]),
             percent(all->pause.sum_us, took_us), time_brief(all->whole.median_us, text[2]));
    page_put(&view->page,
             "<div><dt>steps</dt><dd>%zu</dd></div>"
             "<div><dt>of them done again</dt><dd>%" PRIu64 "</dd></div>"
             "<div><dt>new rounds</dt><dd>%" PRIu64 "</dd></div>"
             "<div><dt>a step in peace</dt><dd>%s</dd></div></dl>\n<p class=\"faint\">",
             view->steps->count, all->repeated, all->rounds, time_brief(record->usual_us, text[3]));
    page_text(&view->page, record->machine);
    page_put(&view->page, ", seed %" PRIu64 "</p>\n", record->seed);
}

static void show_violations(struct view *view)
{
    const struct record *record = view->record;

    if (record->violations == 0 && record->hangs == 0)
        return;
    page_put(&view->page, "<h2 class=\"bad\">What did not hold</h2>\n<ul>\n");
    for (size_t i = 0; i < record->fault_count; i++) {
        const struct record_fault *fault = &record->faults[i];

        if (!fault->violation[0] && !fault->hung)
            continue;
        page_put(&view->page, "<li><b>fault %zu, ", i + 1);
        page_text(&view->page, fault->name);
        page_put(&view->page, "</b> (");
        page_text(&view->page, fault->deed);
        page_put(&view->page, "): %s", fault->hung ? "it hangs: " : "");
        page_text(&view->page, fault->violation);
        page_put(&view->page, "</li>\n");
    }
    page_put(&view->page, "</ul>\n");
}

static void show_skipped(struct view *view)
{
    const struct record *record = view->record;

    if (record->skipped_count == 0)
        return;
    page_put(&view->page, "<h2>Not done on this machine</h2>\n<ul>\n");
    for (size_t i = 0; i < record->skipped_count; i++) {
        page_put(&view->page, "<li>");
        page_text(&view->page, record->skipped[i]);
        page_put(&view->page, "</li>\n");
    }
    page_put(&view->page, "</ul>\n");
}

/* ---- the plot -------------------------------------------------------------------------------- */

/* What a mark says when one points at it. */
static void show_tip(struct view *view, size_t index)
{
    const struct record_fault *fault = &view->record->faults[index];
    char at[TIME_TEXT_MAX];
    char pause[TIME_TEXT_MAX];
    char whole[TIME_TEXT_MAX];

    page_put(&view->page, "<title>%zu: ", index + 1);
    page_text(&view->page, fault->name);
    page_put(&view->page, " at %s, ", time_brief(fault->at_us - view->record->began_us, at));
    page_text(&view->page, fault->deed);
    page_put(&view->page, ": stood still for %s, whole after %s</title>",
             brief(fault->pause_us, pause), brief(fault->whole_us, whole));
}

static void draw_mark(struct view *view, size_t index, double y, const char *class, double radius)
{
    const struct record_fault *fault = &view->record->faults[index];
    double x = plot_x(&view->plot, fault->at_us);

    page_put(&view->page,
             "<circle class=\"k %s\" style=\"--h:%u\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\">", class,
             plot_hue(tally_find(&view->tally, fault->name)), x, y, radius);
    show_tip(view, index);
    page_put(&view->page, "</circle>\n");
    if (fault->violation[0] || fault->hung)
        page_put(&view->page, "<circle class=\"wrong\" cx=\"%.1f\" cy=\"%.1f\" r=\"6\"/>\n", x, y);
}

/* Where it stood still, beside the size of the world. */
static void draw_gaps(struct view *view)
{
    if (view->record->fault_count > GAPS_MOST)
        return;
    for (size_t i = 1; i < view->steps->count; i++) {
        int64_t from = view->steps->list[i - 1].at_us;
        int64_t until = view->steps->list[i].at_us;
        double x = plot_x(&view->plot, from);

        if (until - from > 3 * view->record->usual_us + 10 * TIME_MS)
            page_put(&view->page,
                     "<rect class=\"gap\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>\n", x,
                     SIZE_TOP, plot_x(&view->plot, until) - x + 0.6, SIZE_BOTTOM - SIZE_TOP);
    }
}

static void draw_pauses(struct view *view)
{
    for (size_t i = 0; i < view->record->fault_count; i++) {
        double share = plot_log(view->record->faults[i].pause_us, view->decades);

        draw_mark(view, i, PAUSE_BOTTOM - (PAUSE_BOTTOM - PAUSE_TOP) * share,
                  view->record->fault_count > GAPS_MOST ? "dot" : "", 3);
    }
}

/* A row for each kind: so its name stands at its marks, and is their legend. */
static void draw_lanes(struct view *view)
{
    for (size_t i = 0; i < view->tally.count; i++) {
        double y = LANES_TOP + LANE * ((double)i + 0.5);

        page_put(&view->page,
                 "<path class=\"grid\" d=\"M%d %.1fH%d\"/><circle class=\"k\" style=\"--h:%u\" "
                 "cx=\"5\" cy=\"%.1f\" r=\"4\"/><text class=\"name\" x=\"15\" y=\"%.1f\">",
                 PLOT_LEFT, y, PLOT_RIGHT, plot_hue(i), y, y + 4);
        page_text(&view->page, view->tally.kinds[i].name);
        page_put(&view->page, "</text>\n");
    }
    for (size_t i = 0; i < view->record->fault_count; i++) {
        size_t lane = tally_find(&view->tally, view->record->faults[i].name);

        draw_mark(view, i, LANES_TOP + LANE * ((double)lane + 0.5), "", 3.2);
    }
}

static int show_plot(struct view *view)
{
    double bottom = LANES_TOP + LANE * (double)view->tally.count + 4;
    struct plot_area size = { SIZE_TOP, SIZE_BOTTOM };
    struct plot_area pauses = { PAUSE_TOP, PAUSE_BOTTOM };
    struct plot_area all = { SIZE_TOP, bottom };
    uint32_t most = plot_count_top(levels_most(&view->levels));
    int rc;

    page_put(&view->page,
             "<h2>World size, pauses and faults over time</h2>\n<p class=\"faint\">Each mark is a "
             "fault; point at it to see which. Pauses are on a scale of tenfolds.%s</p>\n",
             view->record->fault_count <= GAPS_MOST ? " Where it stood still is shaded." : "");
    plot_open(&view->plot, bottom + 26, "world size, pauses and faults over time");
    plot_time_axis(&view->plot, all);
    plot_count_axis(&view->plot, size, most, "workers");
    plot_log_axis(&view->plot, pauses, view->decades, "stood still");
    draw_gaps(view);
    rc = plot_levels(&view->plot, size, most, &view->levels, "size", true);
    draw_pauses(view);
    draw_lanes(view);
    plot_close(&view->plot);
    return rc;
}

/* ---- the table ------------------------------------------------------------------------------- */

static double strip_x(const struct view *view, int64_t us)
{
    return 6 + (STRIP_WIDTH - 12) * plot_log(us, view->decades);
}

static void strip_grid(struct view *view)
{
    for (unsigned i = 0; i <= view->decades; i++) {
        double x = 6 + (double)(STRIP_WIDTH - 12) * i / view->decades;

        page_put(&view->page, "<path class=\"grid\" d=\"M%.1f 0V%d\"/>", x, STRIP_HEIGHT);
    }
}

/* All pauses of a kind in a row; they are spread a little, so that equal ones can be seen. */
static void show_strip(struct view *view, size_t place)
{
    const struct tally_kind *kind = &view->tally.kinds[place];
    size_t seen = 0;

    page_put(&view->page, "<td class=\"pic\"><svg width=\"%d\" height=\"%d\">", STRIP_WIDTH,
             STRIP_HEIGHT);
    strip_grid(view);
    for (size_t i = 0; i < view->record->fault_count; i++) {
        const struct record_fault *fault = &view->record->faults[i];
        double y = 4 + (double)(seen * 7 % 13);

        if (strcmp(fault->name, kind->name) != 0)
            continue;
        seen++;
        page_put(&view->page,
                 "<circle class=\"k dot\" style=\"--h:%u\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\"/>",
                 plot_hue(place), strip_x(view, fault->pause_us), y);
    }
    page_put(&view->page, "<path class=\"mark\" d=\"M%.1f 0V%d\"/></svg></td>",
             strip_x(view, kind->pause.median_us), STRIP_HEIGHT);
}

static void strip_heading(struct view *view)
{
    page_put(&view->page, "<th class=\"pic\"><svg width=\"%d\" height=\"14\">", STRIP_WIDTH);
    for (unsigned i = 0; i <= view->decades; i += view->decades > 4 ? 2 : 1)
        page_put(&view->page, "<text x=\"%.1f\" y=\"11\" text-anchor=\"%s\">%s</text>",
                 6 + (double)(STRIP_WIDTH - 12) * i / view->decades,
                 i == 0               ? "start"
                 : i == view->decades ? "end"
                                      : "middle",
                 plot_decade(i));
    page_put(&view->page, "</svg></th>");
}

/* Time in which nobody came further: standing still, and doing steps again. */
static int64_t lost_us(const struct view *view, const struct tally_kind *kind)
{
    return kind->pause.sum_us + (int64_t)kind->repeated * view->record->usual_us;
}

static int64_t most_lost_us(const struct view *view)
{
    int64_t most = 1;

    for (size_t i = 0; i < view->tally.count; i++)
        if (lost_us(view, &view->tally.kinds[i]) > most)
            most = lost_us(view, &view->tally.kinds[i]);
    return most;
}

static void show_bar(struct view *view, const struct tally_kind *kind)
{
    double scale = (double)BAR_WIDTH / (double)most_lost_us(view);
    double still = (double)kind->pause.sum_us * scale;
    char text[TIME_TEXT_MAX];

    page_put(&view->page,
             "<td class=\"bars\"><span class=\"bar still\" style=\"width:%.1fpx\"></span>"
             "<span class=\"bar again\" style=\"width:%.1fpx\"></span> %s</td>",
             still, (double)lost_us(view, kind) * scale - still, brief(lost_us(view, kind), text));
}

static void show_times(struct view *view, const struct tally_kind *kind)
{
    char text[6][TIME_TEXT_MAX];

    page_put(&view->page,
             "<td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td>"
             "<td>%" PRIu64 "</td><td>%" PRIu64 "</td>",
             brief(kind->pause.median_us, text[0]), brief(kind->pause.p90_us, text[1]),
             brief(kind->pause.p99_us, text[2]), brief(kind->pause.most_us, text[3]),
             brief(kind->whole.median_us, text[4]), brief(kind->whole.most_us, text[5]),
             kind->rounds, kind->repeated);
}

static void show_kind(struct view *view, size_t place)
{
    const struct tally_kind *kind = &view->tally.kinds[place];

    page_put(&view->page,
             "<tr><td><span class=\"key\" style=\"background:hsl(%u var(--ks) "
             "var(--kl))\"></span>",
             plot_hue(place));
    page_text(&view->page, kind->name);
    page_put(&view->page, "</td><td>%zu</td>", kind->count);
    show_strip(view, place);
    show_times(view, kind);
    show_bar(view, kind);
    page_put(&view->page, "</tr>\n");
}

static void show_table(struct view *view)
{
    page_put(&view->page,
             "<h2>What each kind of fault costs</h2>\n"
             "<p class=\"faint\">Stood still: the longest time without a step after the fault, "
             "less a step in peace; each dot is a fault, the line is the median. Whole again: "
             "from the fault until all listed hosts train, the fault's own duration included. "
             "Lost: <span class=\"key still\"></span>standing still and "
             "<span class=\"key again\"></span>doing steps again, all of the kind together.</p>\n"
             "<div class=\"wide\"><table>\n"
             "<tr><th></th><th></th><th class=\"pic\">stood still</th><th colspan=\"4\"></th>"
             "<th colspan=\"2\">whole again</th><th></th><th>steps</th><th></th></tr>\n"
             "<tr><th>fault</th><th>times</th>");
    strip_heading(view);
    page_put(&view->page,
             "<th>median</th><th>p90</th><th>p99</th><th>most</th><th>median</th><th>most</th>"
             "<th>rounds</th><th>again</th><th class=\"text\">lost</th></tr>\n");
    for (size_t i = 0; i < view->tally.count; i++)
        show_kind(view, i);
    page_put(&view->page, "<tr class=\"all\"><td>all</td><td>%zu</td><td></td>",
             view->tally.all.count);
    show_times(view, &view->tally.all);
    page_put(&view->page, "<td></td></tr>\n</table></div>\n");
}

int report_page(const struct record *record, const struct steps *steps, const char *path,
                struct hvd_err *err)
{
    struct view view = { .record = record, .steps = steps };
    int rc;
    int closed;

    view.plot = (struct plot){ &view.page, record->began_us, record->ended_us };
    page_open(&view.page, "hvd-elastic under attack");
    rc = tally_take(&view.tally, record);
    if (!rc)
        rc = levels_of_steps(&view.levels, steps);
    if (!rc) {
        view.decades = plot_decades(view.tally.all.pause.most_us);
        show_verdict(&view);
        show_figures(&view);
        show_violations(&view);
        rc = show_plot(&view);
        show_table(&view);
        show_skipped(&view);
    }
    if (rc && !view.page.rc)
        view.page.rc = rc;
    closed = page_close(&view.page, path, err);
    levels_release(&view.levels);
    tally_release(&view.tally);
    return closed;
}
