#include "tools/hosts_options.h"

#include "base/limits.h"
#include "base/time.h"

#define ROW(field, ...) OPT(struct hosts_options, field, __VA_ARGS__)

static const char *const scopes[] = { "slot", "host", NULL };

/* clang-format off */
const struct opt hosts_option_table[] = {
    ROW(hosts, .name = "hosts", .key = 'H', .arg = "LIST", .min = 1, .group = "Hosts",
        .flags = OPT_ARGV_ONLY, .help = "hosts as on a command line, \"a:2,b:2\", instead of files"),
    ROW(slots_per_host, .name = "slots-per-host", .arg = "N", .preset = "1", .min = 1,
        .max = LIMIT_SLOTS_PER_HOST, .group = "Hosts",
        .help = "slots of a host that is written without a number"),

    ROW(blacklist, .name = "blacklist", .arg = "FILE", .min = 1, .group = "Blacklist",
        .help = "say of each host whether the blacklist kept in FILE holds it back, or show all of it when "
                "no hosts are given; the file is made when it is missing and --fail is given"),
    ROW(fail, .name = "fail", .arg = "HOST[:SLOT]", .min = 1, .group = "Blacklist",
        .flags = OPT_ARGV_ONLY, .help = "record a failure there, as the driver does when a worker dies; may be repeated"),
    ROW(clear, .name = "clear", .arg = "HOST[:SLOT]", .min = 1, .group = "Blacklist",
        .flags = OPT_ARGV_ONLY,
        .help = "take back everything that is held against the slot, or against the host and all "
                "its slots; after all --fail; may be repeated"),
    ROW(reason, .name = "reason", .arg = "TEXT", .preset = "recorded by hand", .min = 1,
        .group = "Blacklist", .help = "why, for --fail"),
    ROW(history, .name = "history", .group = "Blacklist", .flags = OPT_ARGV_ONLY,
        .help = "show what has happened on each host, newest first"),

    ROW(cooldown, .name = "blacklist-cooldown-range", .arg = "LOW HIGH", .preset = "10s 10m",
        .group = "Policy of --fail",
        .help = "the first failure keeps a slot unused for LOW, each further one for twice as "
                "long, up to HIGH; a random part of LOW is added, never past HIGH"),
    ROW(forever, .name = "blacklist-forever", .group = "Policy of --fail",
        .help = "the first failure counts until it is cleared"),
    ROW(scope, .name = "blacklist-scope", .arg = "slot|host", .preset = "slot",
        .choices = scopes, .group = "Policy of --fail",
        .help = "what a failure of a slot counts for: the slot, or its whole host"),
    ROW(restarts, .name = "slot-restarts", .arg = "N", .preset = "0", .max = 31,
        .group = "Policy of --fail",
        .help = "failures of one slot within --slot-restarts-window after which it is barred "
                "until cleared; 0: no such budget"),
    ROW(restarts_window_us, .name = "slot-restarts-window", .arg = "TIME", .preset = "1h",
        .min = TIME_S, .group = "Policy of --fail", .help = "the window of --slot-restarts"),

    ROW(config_file, .name = "config-file", .arg = "FILE", .min = 1, .flags = OPT_ARGV_ONLY,
        .group = "General", .help = "read options from lines of \"name = value\""),
    ROW(print_config, .name = "print-config", .flags = OPT_ARGV_ONLY, .group = "General",
        .help = "show each option's value and where it is from, as a config file, and end"),
    ROW(list_options, .name = "list-options", .flags = OPT_ARGV_ONLY, .group = "General",
        .help = "list the options for other programs: name, group, default"),
    ROW(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = "General",
        .help = "show this, and end"),
    ROW(version, .name = "version", .flags = OPT_ARGV_ONLY, .group = "General",
        .help = "show the version, and end"),
};
/* clang-format on */

const size_t hosts_option_count = ARRAY_SIZE(hosts_option_table);
