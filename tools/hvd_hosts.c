/*
 * hvd-hosts: what a host list, a host file or the output of a discovery script means, what changes
 * from one to the next, and which of the hosts a blacklist holds back. Nothing is launched and no
 * job is needed: it is the dry run of a discovery script.
 */
#include "base/limits.h"
#include "base/opt_show.h"
#include "base/time.h"
#include "discovery/diff.h"
#include "discovery/format.h"
#include "discovery/order.h"
#include "discovery/parse.h"
#include "hvd/hvd.h"
#include "os/file.h"
#include "tools/book.h"
#include "tools/hosts_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Exit codes, in the docs and in the tests. */
enum { EXIT_FINE = 0, EXIT_BAD_HOSTS = 1, EXIT_USAGE = 2, EXIT_STORAGE = 4 };

static const char usage_text[] = "hvd-hosts [options] [FILE...]";
static const char about_text[] =
    "Shows what a host list means to hvd-elastic. A FILE holds what a discovery script prints, or "
    "is "
    "a host file; \"-\" is standard input. Several FILEs are read one after another, as if the "
    "script had printed them in turn, and what changes between them is shown.";

static int complain(const struct hvd_err *err, int status)
{
    fflush(stdout); /* so that the two keep their order where they go to the same place */
    fprintf(stderr, "hvd-hosts: %s\n", err->text);
    if (status == EXIT_USAGE)
        fprintf(stderr, "Try 'hvd-hosts --help'.\n");
    return status;
}

/* ---- the hosts ------------------------------------------------------------------------------ */

/* "a:3" is slot 3 of a; "a" and "[::1]" are whole hosts. */
static int read_key(const char *text, struct hosts *key, uint32_t *ret_slot, struct hvd_err *err)
{
    struct span span = { text, strlen(text) };
    const char *close = strchr(text, ']');
    const char *colon = strrchr(close ? close : text, ':');
    int rc = hosts_parse_list(span, "--fail or --clear", 1, key, err);

    if (!rc && key->count != 1)
        rc = err_set(err, HVD_E_INVAL, "%s: name one host or one slot", text);
    if (!rc)
        *ret_slot = colon ? key->items[0].slots : BLACKLIST_WHOLE_HOST;
    return rc;
}

/* What holds for the host or slot now: the answer to --fail and --clear. */
static void show_key(const struct book *book, const char *host, uint32_t slot)
{
    struct blacklist_verdict verdict = blacklist_verdict(&book->list, host, slot, book->now_us);
    char sentence[BLACKLIST_SENTENCE_MAX];
    char key[BLACKLIST_KEY_TEXT_MAX];

    printf("%s: %s\n", blacklist_key_format(host, slot, key),
           blacklist_sentence(&verdict, book->now_us, sentence));
}

static int apply_one(struct book *book, const char *text, const char *reason, struct hvd_err *err)
{
    struct hosts key;
    uint32_t slot;
    int rc;

    hosts_init(&key);
    rc = read_key(text, &key, &slot, err);
    if (!rc)
        rc = reason ? book_fail(book, key.items[0].name, slot, reason, err)
                    : book_clear(book, key.items[0].name, slot, err);
    if (!rc)
        show_key(book, key.items[0].name, slot);
    hosts_release(&key);
    return rc;
}

static int apply_to_book(struct book *book, const struct hosts_options *options,
                         struct hvd_err *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < options->fail.count; i++)
        rc = apply_one(book, options->fail.items[i], options->reason, err);
    for (size_t i = 0; !rc && i < options->clear.count; i++)
        rc = apply_one(book, options->clear.items[i], NULL, err);
    return rc;
}

/* How many slots of the host may be used now; a host that is held back has none. */
static uint32_t usable_slots(const struct book *book, const struct host *host)
{
    uint32_t usable = 0;

    if (!book)
        return host->slots;
    for (uint32_t slot = 0; slot < host->slots; slot++) {
        struct blacklist_verdict verdict =
            blacklist_verdict(&book->list, host->name, slot, book->now_us);

        usable += verdict.state == BLACKLIST_OK;
    }
    return usable;
}

/* One line for the host, or for one slot of it, when something is held against it. */
static void show_verdict(const struct book *book, const struct host *host, uint32_t slot)
{
    struct blacklist_verdict verdict =
        blacklist_verdict(&book->list, host->name, slot, book->now_us);
    char sentence[BLACKLIST_SENTENCE_MAX];

    if ((verdict.state == BLACKLIST_OK && verdict.failures == 0) || verdict.by_host)
        return;
    blacklist_sentence(&verdict, book->now_us, sentence);
    if (slot == BLACKLIST_WHOLE_HOST)
        printf("      host: %s\n", sentence);
    else
        printf("      slot %" PRIu32 ": %s\n", slot, sentence);
}

static int show_event(void *arg, const struct blacklist_event *event)
{
    const struct book *book = arg;
    char key[BLACKLIST_KEY_TEXT_MAX];
    char ago[TIME_TEXT_MAX];

    time_format((book->wall_us - event->wall_us) / TIME_S * TIME_S, ago);
    printf("      %s ago: %s: %s%s\n", ago, blacklist_key_format(event->host, event->slot, key),
           event->reason, event->counted ? "" : " (not counted)");
    return 0;
}

static int show_host(struct book *book, const struct hosts_options *options,
                     const struct host *host, uint64_t *next_rank, struct hvd_err *err)
{
    char name[HOST_NAME_TEXT_MAX];
    uint32_t usable = usable_slots(book, host);

    printf("  %-20s %4" PRIu32 " slot%s  ", host_name_format(host->name, name), host->slots,
           host->slots == 1 ? " " : "s");
    if (usable == 0)
        printf("not used\n");
    else if (usable == 1)
        printf("rank %" PRIu64 "\n", *next_rank);
    else
        printf("ranks %" PRIu64 "-%" PRIu64 "\n", *next_rank, *next_rank + usable - 1);
    *next_rank += usable;
    if (!book)
        return 0;
    show_verdict(book, host, BLACKLIST_WHOLE_HOST);
    for (uint32_t slot = 0; slot < host->slots; slot++)
        show_verdict(book, host, slot);
    return options->history
               ? blacklist_store_history(book->store, host->name, show_event, book, err)
               : 0;
}

static int show_hosts(struct book *book, const struct hosts_options *options,
                      const struct hosts *hosts, struct hvd_err *err)
{
    uint64_t next_rank = 0;
    int rc = 0;

    for (size_t i = 0; !rc && i < hosts->count; i++)
        rc = show_host(book, options, &hosts->items[i], &next_rank, err);
    printf("%zu host%s, %" PRIu64 " slot%s, %" PRIu64 " can be used\n", hosts->count,
           hosts->count == 1 ? "" : "s", hosts_total_slots(hosts),
           hosts_total_slots(hosts) == 1 ? "" : "s", next_rank);
    return rc;
}

/* ---- reading and following ------------------------------------------------------------------ */

static int read_hosts(const struct hosts_options *options, const char *path,
                      struct hosts *ret_hosts, struct hvd_err *err)
{
    uint32_t slots = (uint32_t)options->slots_per_host;
    struct buf text;
    int rc;

    if (!path)
        return hosts_parse_list((struct span){ options->hosts, strlen(options->hosts) }, "--hosts",
                                slots, ret_hosts, err);
    buf_init(&text, LIMIT_HOST_TEXT_BYTES + 1);
    rc = file_read(path, &text, err);
    if (!rc)
        rc = hosts_parse_text((struct span){ buf_text(&text), text.length },
                              strcmp(path, "-") ? path : "standard input", slots, ret_hosts, err);
    buf_release(&text);
    return rc;
}

/* Shows the change from `known` to what the path holds, and makes that the known set. */
static int follow(const struct hosts_options *options, const char *path, bool first,
                  struct hosts *known, struct hvd_err *err)
{
    char described[DIFF_TEXT_MAX];
    struct hosts now;
    struct diff diff;
    int rc;

    hosts_init(&now);
    diff_init(&diff);
    rc = read_hosts(options, path, &now, err);
    if (!rc)
        rc = diff_between(known, &now, &diff);
    if (!rc && !first)
        printf("%s: %s\n", path, diff_describe(&diff, described));
    if (!rc)
        rc = order_update(known, &now, known);
    if (rc == HVD_E_NOMEM)
        err_set(err, rc, "%s", err_text(rc));
    diff_release(&diff);
    hosts_release(&now);
    return rc;
}

static int run_with_book(struct book *book, const struct hosts_options *options, char **paths,
                         struct hvd_err *err)
{
    struct hosts known;
    int status = EXIT_FINE;
    int rc = book ? apply_to_book(book, options, err) : 0;

    if (rc)
        return complain(err, rc == HVD_E_INVAL || rc == HVD_E_LIMIT || rc == HVD_E_NOTFOUND
                                 ? EXIT_USAGE
                                 : EXIT_STORAGE);
    hosts_init(&known);
    if (options->hosts && follow(options, NULL, true, &known, err))
        status = complain(err, EXIT_BAD_HOSTS);
    for (size_t i = 0; status == EXIT_FINE && paths[i]; i++) {
        if (follow(options, paths[i], i == 0, &known, err))
            status = complain(err, EXIT_BAD_HOSTS);
    }
    if (status == EXIT_FINE && (options->hosts || paths[0]) &&
        show_hosts(book, options, &known, err))
        status = complain(err, EXIT_STORAGE);
    hosts_release(&known);
    return status;
}

/* ---- options ----------------------------------------------------------------------------------
 */

static int read_options(struct opt_set *set, struct hosts_options *options, int argc, char **argv,
                        int *ret_rest, struct hvd_err *err)
{
    struct buf text;
    int rc = opt_argv(set, argc, argv, ret_rest, err);

    if (!rc)
        rc = opt_env(set, environ, err);
    if (rc || !options->config_file)
        return rc;
    buf_init(&text, LIMIT_CONFIG_TEXT_BYTES + 1);
    rc = file_read(options->config_file, &text, err);
    if (!rc)
        rc = opt_config(set, options->config_file, buf_text(&text), text.length, err);
    buf_release(&text);
    return rc;
}

/* --help and its like: true when it was asked for, and has been answered. */
static bool answer(const struct opt_set *set, const struct hosts_options *options, int *ret_status)
{
    struct buf out;
    int rc = 0;

    buf_init(&out, LIMIT_CONFIG_TEXT_BYTES);
    if (options->help)
        rc = opt_show_help(set, usage_text, about_text, &out);
    else if (options->version)
        rc = buf_printf(&out, "hvd-hosts %s\n", HVD_VERSION_TEXT);
    else if (options->print_config)
        rc = opt_show_config(set, true, &out);
    else if (options->list_options)
        rc = opt_show_names(set, &out);
    else
        return false;
    fputs(buf_text(&out), stdout);
    buf_release(&out);
    *ret_status = rc ? EXIT_STORAGE : EXIT_FINE;
    return true;
}

/* What the table cannot say about options that depend on each other. */
static int check_options(const struct hosts_options *options, char **paths, struct hvd_err *err)
{
    bool acts = options->fail.count || options->clear.count;

    if (options->hosts && paths[0])
        return err_set(err, HVD_E_INVAL, "--hosts and files: give one or the other");
    if (!options->hosts && !paths[0] && !acts)
        return err_set(err, HVD_E_INVAL, "no hosts: name a file, - or --hosts LIST");
    if ((acts || options->history) && !options->blacklist)
        return err_set(err, HVD_E_INVAL, "--fail, --clear and --history need --blacklist FILE");
    return 0;
}

static struct policy policy_of(const struct hosts_options *options)
{
    return (struct policy){ .lower_us = options->cooldown.low_us,
                            .upper_us = options->cooldown.high_us,
                            .forever = options->forever,
                            .scope = options->scope ? SCOPE_HOST : SCOPE_SLOT,
                            .restarts_max = (uint32_t)options->restarts,
                            .restarts_window_us = options->restarts_window_us,
                            .decay_us = options->decay_us };
}

static int run(const struct hosts_options *options, char **paths)
{
    struct policy policy = policy_of(options);
    struct hvd_err err = { 0 };
    struct book book;
    int status;

    if (check_options(options, paths, &err) || policy_check(&policy, &err))
        return complain(&err, EXIT_USAGE);
    if (!options->blacklist)
        return run_with_book(NULL, options, paths, &err);
    if (options->fail.count == 0 && access(options->blacklist, F_OK)) {
        err_set(&err, HVD_E_NOTFOUND, "%s: there is no such blacklist; --fail would make it",
                options->blacklist);
        return complain(&err, EXIT_STORAGE);
    }
    if (book_open(&book, options->blacklist, &policy, &err))
        return complain(&err, EXIT_STORAGE);
    status = run_with_book(&book, options, paths, &err);
    book_close(&book);
    return status;
}

int main(int argc, char **argv)
{
    struct hosts_options options;
    struct hvd_err err = { 0 };
    struct opt_set set;
    int status = EXIT_FINE;
    int rest;

    if (opt_init(&set, hosts_option_table, hosts_option_count, &options)) {
        fprintf(stderr, "hvd-hosts: out of memory\n");
        return EXIT_STORAGE;
    }
    if (read_options(&set, &options, argc, argv, &rest, &err))
        status = complain(&err, EXIT_USAGE);
    else if (!answer(&set, &options, &status))
        status = run(&options, argv + rest);
    opt_release(&set);
    if ((fflush(stdout) || ferror(stdout)) && status == EXIT_FINE) {
        err_set(&err, HVD_E_IO, "cannot write to standard output: %s", strerror(errno));
        status = complain(&err, EXIT_STORAGE);
    }
    return status;
}
