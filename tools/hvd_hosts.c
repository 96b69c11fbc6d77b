/*
 * hvd-hosts: what a host list, a host file or the output of a discovery script means, what changes
 * from one to the next, and which of the hosts a blacklist holds back. Nothing is launched and no
 * job is needed: it is the dry run of a discovery script.
 *
 * Everything that can be wrong with the words of the command and with the lists is found before the
 * blacklist is touched.
 */
#include "base/limits.h"
#include "base/opt_show.h"
#include "discovery/key.h"
#include "discovery/order.h"
#include "discovery/parse.h"
#include "hvd/hvd.h"
#include "os/file.h"
#include "tools/book.h"
#include "tools/hosts_options.h"
#include "tools/show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Exit codes, in the docs and in the tests. */
enum { EXIT_FINE = 0, EXIT_BAD_HOSTS = 1, EXIT_USAGE = 2, EXIT_STORAGE = 4 };

static const char usage_text[] = "hvd-hosts [options] [FILE...]";
static const char about_text[] =
    "Shows what a host list means to hvd-elastic. A FILE holds what a discovery script prints, or "
    "is a host file; \"-\" is standard input. Several FILEs are read one after another, as if the "
    "script had printed them in turn, and what changes between them is shown. Options go before "
    "the files.";

static int complain(const struct hvd_err *err, int status)
{
    fflush(stdout); /* so that the two keep their order where they go to the same place */
    fprintf(stderr, "hvd-hosts: %s\n", err->text);
    if (status == EXIT_USAGE)
        fprintf(stderr, "Try 'hvd-hosts --help'.\n");
    return status;
}

/* ---- host lists ------------------------------------------------------------------------------ */

static int read_hosts(const struct hosts_options *options, const char *path,
                      struct hosts *ret_hosts, struct hvd_err *err)
{
    uint32_t slots = (uint32_t)options->slots_per_host;
    struct buf text;
    int rc;

    if (options->hosts) /* then there are no files */
        return hosts_parse_list((struct span){ options->hosts, strlen(options->hosts) }, "--hosts",
                                slots, ret_hosts, err);
    buf_init(&text, LIMIT_HOST_TEXT_BYTES + 1);
    rc = file_read(path, &text, err);
    if (!rc)
        rc = hosts_parse_text((struct span){ buf_text(&text), text.length },
                              strcmp(path, "-") != 0 ? path : "standard input", slots, ret_hosts,
                              err);
    buf_release(&text);
    return rc;
}

/* Shows the change from `known` to what the path holds, and makes that the known set. */
static int follow(const struct hosts_options *options, const char *path, bool first,
                  struct hosts *known, struct hvd_err *err)
{
    struct hosts now;
    struct diff diff;
    int rc;

    hosts_init(&now);
    diff_init(&diff);
    rc = read_hosts(options, path, &now, err);
    if (!rc)
        rc = diff_between(known, &now, &diff);
    if (!rc && !first)
        show_change(path, &diff);
    if (!rc && now.count == 0) {
        fflush(stdout);
        fprintf(stderr, "hvd-hosts: warning: a list without hosts means that all of them leave\n");
    }
    if (!rc)
        rc = order_update(known, &now, known);
    if (rc == HVD_E_NOMEM)
        err_set(err, rc, "%s", err_text(rc));
    diff_release(&diff);
    hosts_release(&now);
    return rc;
}

static int follow_all(const struct hosts_options *options, char **paths, struct hosts *known,
                      struct hvd_err *err)
{
    int rc = options->hosts ? follow(options, NULL, true, known, err) : 0;

    for (size_t i = 0; !rc && paths[i]; i++)
        rc = follow(options, paths[i], i == 0, known, err);
    return rc;
}

/* ---- the blacklist --------------------------------------------------------------------------- */

/* Each --fail, then each --clear; a NULL book only looks whether they can be understood. */
static int apply_keys(struct book *book, const struct hosts_options *options, struct hvd_err *err)
{
    struct key key;
    int rc = 0;

    for (size_t i = 0; !rc && i < options->fail.count; i++) {
        rc = key_parse("--fail", options->fail.items[i], &key, err);
        if (!rc && book)
            rc = book_fail(book, key.host, key.slot, options->reason, err);
        if (!rc && book)
            show_key(book, key.host, key.slot);
    }
    for (size_t i = 0; !rc && i < options->clear.count; i++) {
        rc = key_parse("--clear", options->clear.items[i], &key, err);
        if (!rc && book)
            rc = book_clear(book, key.host, key.slot, err);
        if (!rc && book)
            show_key(book, key.host, key.slot);
    }
    return rc;
}

static int open_book(struct book *book, const struct hosts_options *options,
                     const struct policy *policy, struct hvd_err *err)
{
    if (options->fail.count == 0 && access(options->blacklist, F_OK))
        return err_set(err, HVD_E_NOTFOUND, "%s: there is no such blacklist; --fail would make it",
                       options->blacklist);
    return book_open(book, options->blacklist, policy, err);
}

static int use_book(const struct hosts_options *options, const struct policy *policy,
                    const struct hosts *hosts, struct hvd_err *err)
{
    bool acts = options->fail.count || options->clear.count;
    struct book book;
    int rc = open_book(&book, options, policy, err);

    if (rc)
        return rc;
    rc = apply_keys(&book, options, err);
    if (!rc && hosts)
        rc = show_hosts(&book, options->history, hosts, err);
    else if (!rc && (!acts || options->history))
        rc = show_book(&book, options->history, err);
    book_close(&book);
    return rc;
}

/* ---- options --------------------------------------------------------------------------------- */

static struct policy policy_of(const struct hosts_options *options)
{
    struct policy policy;

    policy_init(&policy);
    policy.lower_us = options->cooldown.low_us;
    policy.upper_us = options->cooldown.high_us;
    policy.forever = options->forever;
    policy.scope = options->scope ? SCOPE_HOST : SCOPE_SLOT;
    policy.restarts_max = (uint32_t)options->restarts;
    policy.restarts_window_us = options->restarts_window_us;
    return policy;
}

/* What the table cannot say: about words that are no options, and options that need others. */
static int check_words(const struct hosts_options *options, char **paths, struct hvd_err *err)
{
    bool acts = options->fail.count || options->clear.count;
    size_t inputs = options->config_file && !strcmp(options->config_file, "-");

    for (size_t i = 0; paths[i]; i++) {
        inputs += !strcmp(paths[i], "-");
        if (paths[i][0] == '-' && paths[i][1])
            return err_set(err, HVD_E_INVAL,
                           "%s: options go before the files; a file of that name is ./%s", paths[i],
                           paths[i]);
    }
    if (inputs > 1)
        return err_set(err, HVD_E_INVAL, "-: standard input can be read only once");
    if (options->hosts && paths[0])
        return err_set(err, HVD_E_INVAL, "--hosts and files: give one or the other");
    if ((acts || options->history) && !options->blacklist)
        return err_set(err, HVD_E_INVAL, "--fail, --clear and --history need --blacklist FILE");
    if (!options->hosts && !paths[0] && !options->blacklist)
        return err_set(err, HVD_E_INVAL, "no hosts: name a file, - or --hosts LIST");
    return 0;
}

static int run(const struct hosts_options *options, char **paths)
{
    struct policy policy = policy_of(options);
    bool listed = options->hosts || paths[0];
    struct hvd_err err = { 0 };
    struct hosts known;
    int status = EXIT_FINE;
    int rc;

    if (check_words(options, paths, &err) || policy_check(&policy, &err) ||
        apply_keys(NULL, options, &err))
        return complain(&err, EXIT_USAGE);
    hosts_init(&known);
    rc = follow_all(options, paths, &known, &err);
    if (rc)
        status = complain(&err, rc == HVD_E_NOMEM ? EXIT_STORAGE : EXIT_BAD_HOSTS);
    else if (!options->blacklist)
        show_hosts(NULL, false, &known, &err);
    else if (use_book(options, &policy, listed ? &known : NULL, &err))
        status = complain(&err, EXIT_STORAGE);
    hosts_release(&known);
    return status;
}

/* Asking for help must work whatever the environment holds, so that is read last. */
static int read_options(struct opt_set *set, struct hosts_options *options, int argc, char **argv,
                        int *ret_rest, struct hvd_err *err)
{
    struct buf text;
    int rc = opt_argv(set, argc, argv, ret_rest, err);

    if (rc || options->help || options->version || options->list_options)
        return rc;
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
