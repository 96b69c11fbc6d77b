#include "driver/ask_options.h"

#include "base/limits.h"
#include "base/text.h"

#include <string.h>

const struct ask_verb ask_verbs[ASK_VERBS] = {
    {"status",     "",                     "Shows where the job stands."                                              },
    { "hosts",     "",                     "Shows each host, what runs there, and why no more does; then each worker."},
    { "changes",   "",                     "Shows what each change of the membership has cost, by phase."             },
    { "events",    "",                     "Shows what has happened to the job."                                      },
    { "drain",     "HOST[:SLOT] ",
     "Asks the workers of a host, or of one slot, to leave in order. Nothing is rolled back, and "
      "leaving is never counted as a failure. Nothing is launched there until it is undrained."                       },
    { "undrain",   "HOST[:SLOT] ",         "Lets a drained host or slot be used again."                               },
    { "blacklist", "[clear HOST[:SLOT]] ",
     "Shows which hosts and slots failures are held against; with clear, forgives them."                              },
    { "stop",      "",                     "Ends the job: all workers and agents, then the driver, with code 143."    },
};

/* A path is a program. */
const char *ask_nearest_verb(const char *word)
{
    const char *names[ASK_VERBS];

    for (size_t i = 0; i < ASK_VERBS; i++)
        names[i] = ask_verbs[i].name;
    return strchr(word, '/') ? NULL : text_nearest(word, names, ASK_VERBS);
}

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
