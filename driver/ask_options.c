#include "driver/ask_options.h"

#include "base/limits.h"

#define ROW(field, ...)                               \
    OPT(struct ask_options, field, .group = "Asking", \
        .flags = OPT_NO_ENV | OPT_ARGV_ONLY | OPT_NEVER, __VA_ARGS__)

/* clang-format off */
const struct opt ask_option_table[] = {
    OPT(struct ask_options, job, .name = "job", .arg = "NAME", .min = 1, .group = "Asking",
        .help = "the job; the same as its name after the other words. Otherwise the only one whose "
                "driver lives"),
    OPT(struct ask_options, state_dir, .name = "state-dir", .arg = "DIR", .min = 1,
        .group = "Asking", .help = "the job's state directory, if it was given one"),
    ROW(json, .name = "json", .help = "one line of JSON; of events one line each"),
    ROW(follow, .name = "follow", .key = 'f', .help = "events: go on with those that come"),
    ROW(lines, .name = "lines", .key = 'n', .arg = "N", .preset = "4096",
        .max = LIMIT_EVENTS_KEPT, .help = "events: the newest N"),
    ROW(deadline_us, .name = "deadline", .arg = "TIME", .preset = "never",
        .help = "drain: whoever has not left by then is killed"),
    OPT(struct ask_options, wait, .name = "wait", .preset = "true", .flags = OPT_NO_ENV,
        .group = "Asking", .help = "stop: wait until the driver has ended"),
    ROW(help, .name = "help", .key = 'h', .help = "show this, and end"),
};
/* clang-format on */

const size_t ask_option_count = ARRAY_SIZE(ask_option_table);
