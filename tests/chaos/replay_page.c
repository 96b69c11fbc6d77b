#include "base/time.h"
#include "tests/chaos/page.h"
#include "tests/chaos/plot.h"
#include "tests/chaos/report.h"
#include "tests/chaos/tally.h"

#include "base/mem.h"

#include <inttypes.h>

/* The plot: from above to below */
#define SIZE_TOP     14
#define SIZE_BOTTOM  230
#define PAUSE_TOP    262
#define PAUSE_BOTTOM 372

#define BAR_WIDTH    520

/* A change of rounds, and how long it took beyond a step. */
struct change {
    int64_t at_us;
    int64_t pause_us;
    uint32_t from, to;
};

struct view {
    struct page page;
    const struct replay *replay;
    const struct steps *steps;
    struct plot plot;
    struct levels there, size;
    struct change *changes;
    size_t change_count;
    struct tally_times lost, joined; /* pauses where somebody went, and where nobody did */
};

static double percent(const struct replay *replay, int64_t part)
{
    return replay->available_us > 0 ? 100.0 * (double)part / (double)replay->available_us : 0;
}

static const char *brief(int64_t us, char text[TIME_TEXT_MAX])
{
    return us < TIME_MS ? "&lt;1ms" : time_brief(us, text);
}

/* ---- what there is to see -------------------------------------------------------------------- */

static struct tally_times times_of(const struct view *view, bool smaller, int64_t *times)
{
    size_t count = 0;

    for (size_t i = 0; i < view->change_count; i++)
        if ((view->changes[i].to < view->changes[i].from) == smaller)
            times[count++] = view->changes[i].pause_us;
    return tally_times(times, count);
}

static int find_changes(struct view *view)
{
    const struct steps *steps = view->steps;
    int64_t *times = mem_zalloc_array(steps->count + 1, sizeof(*times));

    view->changes = mem_zalloc_array(steps->count + 1, sizeof(*view->changes));
    if (!times || !view->changes) {
        mem_free(times);
        return HVD_E_NOMEM;
    }
    for (size_t i = 1; i < steps->count; i++) {
        const struct step *step = &steps->list[i];
        int64_t gap = step->at_us - step[-1].at_us;

        if (step->round != step[-1].round && step->at_us <= view->replay->ended_us)
            view->changes[view->change_count++] = (struct change){
                .at_us = step->at_us,
                .pause_us = gap > view->replay->usual_us ? gap - view->replay->usual_us : 0,
                .from = step[-1].size,
                .to = step->size
            };
    }
    view->lost = times_of(view, true, times);
    view->joined = times_of(view, false, times);
    mem_free(times);
    return 0;
}

static int find_levels(struct view *view)
{
    const struct replay *replay = view->replay;
    int rc = levels_of_steps(&view->size, view->steps);

    for (size_t i = 0; !rc && i < replay->change_count; i++)
        rc = levels_add(&view->there, replay->changes[i].at_us,
                        replay->changes[i].hosts * replay->slots);
    return rc;
}

/* ---- in words -------------------------------------------------------------------------------- */

static void show_verdict(struct view *view)
{
    const struct replay *replay = view->replay;
    char pause[TIME_TEXT_MAX];

    page_put(&view->page, "<h1>Machines that come and go: ");
    page_text(&view->page, replay->title);
    page_put(&view->page, "</h1>\n<p class=\"verdict\">");
    if (replay->violations > 0)
        page_put(&view->page, "<span class=\"bad\">Not everything held.</span> ");
    page_put(
        &view->page,
        "<span class=\"%s\">%.1f %%</span> of the time that workers were there went into steps "
        "that count; at most %.1f %% could have. Who stayed stood still for %s (median) when "
        "a machine was taken away.",
        replay->violations ? "" : "good", percent(replay, replay->useful_us),
        percent(replay, replay->limit_us), brief(view->lost.median_us, pause));
    page_put(&view->page, "</p>\n");
    if (replay->violations > 0) {
        page_put(&view->page, "<p class=\"bad\">");
        page_text(&view->page, replay->violation);
        page_put(&view->page, "</p>\n");
    }
}

static void show_figures(struct view *view)
{
    const struct replay *replay = view->replay;
    char text[4][TIME_TEXT_MAX];
    uint32_t went = 0;

    for (size_t i = 0; i < replay->change_count; i++)
        went += !replay->changes[i].add;
    page_put(&view->page,
             "<dl><div><dt>it took</dt><dd>%s</dd></div>"
             "<div><dt>workers at most</dt><dd>%" PRIu32 "</dd></div>"
             "<div><dt>times machines came</dt><dd>%zu</dd></div>"
             "<div><dt>times machines went</dt><dd>%" PRIu32 "</dd></div>",
             time_brief(replay->ended_us - replay->began_us, text[0]), levels_most(&view->there),
             replay->change_count - went, went);
    page_put(&view->page,
             "<div><dt>steps</dt><dd>%" PRIu64 "</dd></div>"
             "<div><dt>done again</dt><dd>%" PRIu64 "</dd></div>"
             "<div><dt>a step in peace</dt><dd>%s</dd></div></dl>\n<p class=\"faint\">",
             replay->steps, replay->repeated, time_brief(replay->usual_us, text[1]));
    page_text(&view->page, replay->machine);
    page_put(&view->page, "</p>\n");
}

/* ---- the plot -------------------------------------------------------------------------------- */

static void draw_pauses(struct view *view, struct plot_area area, unsigned decades)
{
    char text[TIME_TEXT_MAX];

    for (size_t i = 0; i < view->change_count; i++) {
        const struct change *change = &view->changes[i];
        double share = plot_log(change->pause_us, decades);

        page_put(&view->page,
                 "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\"><title>%" PRIu32
                 " to %" PRIu32 " workers: stood still for %s</title></circle>\n",
                 change->to < change->from ? "remove" : "add", plot_x(&view->plot, change->at_us),
                 area.bottom - (area.bottom - area.top) * share, change->from, change->to,
                 brief(change->pause_us, text));
    }
}

static int show_plot(struct view *view)
{
    struct plot_area size = { SIZE_TOP, SIZE_BOTTOM };
    struct plot_area pauses = { PAUSE_TOP, PAUSE_BOTTOM };
    struct plot_area all = { SIZE_TOP, PAUSE_BOTTOM };
    uint32_t most = plot_count_top(levels_most(&view->there));
    int64_t most_us =
        view->lost.most_us > view->joined.most_us ? view->lost.most_us : view->joined.most_us;
    unsigned decades = plot_decades(most_us);
    int rc;

    page_put(
        &view->page,
        "<h2>Who was there, and who trained</h2>\n<p class=\"faint\"><span class=\"key rest\">"
        "</span>there &nbsp; <span class=\"key useful\"></span>trained. Below, for each new "
        "round, how long it took beyond a step, on a scale of tenfolds: <span class=\"good\">"
        "&#9679;</span> machines came, <span class=\"bad\">&#9679;</span> machines went.</p>\n");
    plot_open(&view->plot, PAUSE_BOTTOM + 26, "workers that were there and that trained, pauses");
    plot_time_axis(&view->plot, all);
    plot_count_axis(&view->plot, size, most, "workers");
    plot_log_axis(&view->plot, pauses, decades, "stood still");
    rc = plot_levels(&view->plot, size, most, &view->there, "there", false);
    if (!rc)
        rc = plot_levels(&view->plot, size, most, &view->size, "size", false);
    draw_pauses(view, pauses, decades);
    plot_close(&view->plot);
    return rc;
}

/* ---- where the time went --------------------------------------------------------------------- */

/* Bars of what was lost are drawn on their own scale: beside the useful time nobody would see
 * them. */
static void show_part(struct view *view, const char *class, const char *name, int64_t part,
                      int64_t full)
{
    double width = full > 0 && part > 0 ? BAR_WIDTH * (double)part / (double)full : 0;

    page_put(&view->page,
             "<tr><td>%s</td><td class=\"bars\"><span class=\"bar %s\" style=\"width:%.1fpx\">"
             "</span></td><td>%.1f</td><td>%.2f %%</td></tr>\n",
             name, class, width, (double)part / (double)TIME_S, percent(view->replay, part));
}

static void show_parts(struct view *view)
{
    const struct replay *replay = view->replay;
    int64_t lost = replay->available_us - replay->useful_us;
    int64_t rest = lost - replay->lost_boot_us - replay->lost_pause_us - replay->lost_again_us;

    page_put(&view->page,
             "<h2>Where the time went</h2>\n<div class=\"wide\"><table>\n"
             "<tr><th>of what was there</th><th></th><th>worker-seconds</th><th></th></tr>\n");
    show_part(view, "rest", "there", replay->available_us, replay->available_us);
    show_part(view, "limit", "could have been useful", replay->limit_us, replay->available_us);
    show_part(view, "useful", "useful", replay->useful_us, replay->available_us);
    page_put(&view->page, "<tr><th>of what was lost</th><th></th><th></th><th></th></tr>\n");
    show_part(view, "boot", "there, and did not train", replay->lost_boot_us, lost);
    show_part(view, "still", "stood still", replay->lost_pause_us, lost);
    show_part(view, "again", "steps done again", replay->lost_again_us, lost);
    show_part(view, "rest", "the rest", rest, lost);
    page_put(&view->page, "</table></div>\n");
}

static void show_pause_row(struct view *view, const char *name, const struct tally_times *times)
{
    char text[4][TIME_TEXT_MAX];

    page_put(&view->page, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
             name, brief(times->median_us, text[0]), brief(times->p90_us, text[1]),
             brief(times->p99_us, text[2]), brief(times->most_us, text[3]));
}

static void show_pauses(struct view *view)
{
    page_put(&view->page,
             "<h2>How long who stayed stood still</h2>\n<div class=\"wide\"><table>\n"
             "<tr><th></th><th>median</th><th>p90</th><th>p99</th><th>most</th></tr>\n");
    show_pause_row(view, "machines went", &view->lost);
    show_pause_row(view, "machines came", &view->joined);
    page_put(&view->page,
             "</table></div>\n<p class=\"faint\">From the last step of a round to the first of the "
             "next, less a step in peace. What is useful, what is lost and what the limit means "
             "stands in docs/chaos.md, Traces.</p>\n");
}

int report_replay_page(const struct replay *replay, const struct steps *steps, const char *path,
                       struct hvd_err *err)
{
    struct view view = { .replay = replay, .steps = steps };
    int closed;
    int rc;

    view.plot = (struct plot){ &view.page, replay->began_us, replay->ended_us };
    page_open(&view.page, "Machines that come and go");
    rc = find_changes(&view);
    if (!rc)
        rc = find_levels(&view);
    if (!rc) {
        show_verdict(&view);
        show_figures(&view);
        rc = show_plot(&view);
        show_parts(&view);
        show_pauses(&view);
    }
    if (rc && !view.page.rc)
        view.page.rc = rc;
    closed = page_close(&view.page, path, err);
    levels_release(&view.there);
    levels_release(&view.size);
    mem_free(view.changes);
    return closed;
}
