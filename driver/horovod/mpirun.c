/*
 * mpirun.c: reads options of mpirun's command line that guides for Horovod use. options.c calls it
 * after it has read the command line. An option that asks for a change is never ignored: it sets
 * the option of hvd-elastic that says the same, or it is refused.
 */
#include "driver/horovod/mpirun.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/text.h"

#include <string.h>

/* A parameter of -mca, "NAME VALUE". A value whose words are all in `holds` is accepted without
 * effect, because what it asks for happens in any case. Any other value becomes the value of our
 * `option`, with `sign` before it; if `option` is NULL, it is refused. */
/* clang-format off */
static const struct mca_row {
    const char *name;
    /* " word word "; NULL: no value is accepted without effect; "": every value is */
    const char *holds;
    const char *option;
    const char *sign;
} mca_rows[] = {
    { "btl", " ^openib self sm tcp vader ", NULL, "" },
    { "btl_tcp_if_exclude", NULL, "network-interface", "^" },
    { "btl_tcp_if_include", NULL, "network-interface", "" },
    { "oob_tcp_if_exclude", NULL, "network-interface", "^" },
    { "oob_tcp_if_include", NULL, "network-interface", "" },
    { "plm_rsh_agent", NULL, "launcher", "" },
    { "plm_rsh_args", NULL, "ssh-args", "" },
    { "plm_rsh_no_tree_spawn", "", NULL, "" },
    { "pml", " ob1 ^ucx ", NULL, "" },
};
/* clang-format on */

/* Reads one item of -mca, "NAME VALUE". Accepts it without effect; or sets *ret_given to the option
 * of hvd-elastic that says the same (`value` keeps the text of that option); or refuses it with an
 * error. */
static int take_parameter(struct opt_set *set, const char *item, struct buf *value,
                          struct opt_given *ret_given, struct hvd_err *err)
{
    struct span rest = { item, strlen(item) };
    const struct mca_row *row = NULL;
    char quoted[TEXT_QUOTE_MAX];
    struct span name, unread, part, word, words;
    bool holds;
    int rc;

    span_next(&rest, ' ', &name);
    rest = span_trim(rest);
    for (size_t i = 0; i < ARRAY_SIZE(mca_rows) && !row; i++) {
        if (span_is(name, mca_rows[i].name))
            row = &mca_rows[i];
    }
    if (!rest.length)
        return err_set(err, HVD_E_INVAL, "--mca %s: the value is missing; write -mca NAME VALUE",
                       text_quote(item, strlen(item), quoted));
    /* The value is accepted if each of its words, as in "self,tcp", is in row->holds. If row->holds
     * is "", each value is accepted. */
    holds = row && row->holds;
    unread = rest;
    while (holds && *row->holds && span_next(&unread, ',', &part)) {
        words = (struct span){ row->holds, strlen(row->holds) };
        holds = false;
        while (!holds && span_next(&words, ' ', &word))
            holds =
                word.length && word.length == part.length && !memcmp(word.at, part.at, word.length);
    }
    if (holds)
        return 0;
    if (!row || !row->option)
        return err_set(err, HVD_E_UNSUPPORTED,
                       "--mca %s: not supported here: nothing of MPI runs; leave it out: workers "
                       "use shared memory and TCP, --network-interface chooses the network, and "
                       "NCCL has variables of its own (-x NCCL_...)",
                       text_quote(item, strlen(item), quoted));
    if (opt_source(set, row->option) == OPT_COMMAND_LINE)
        return err_set(err, HVD_E_INVAL,
                       "--%s and --mca %s: both options set the same; leave one out", row->option,
                       row->name);
    rc = buf_printf(value, "%s%.*s", row->sign, (int)rest.length, rest.at);
    if (rc)
        return err_set(err, rc, "--mca %s: %s", row->name, err_text(rc));
    *ret_given = (struct opt_given){ row->option, buf_text(value), "--mca", row->name };
    return 0;
}

/* Reads the values of -bind-to, -map-by and -mca. A value that holds in any case is accepted
 * without effect. The options that items of -mca stand for are set all together, or after an error
 * none of them (opt_take). */
int horovod_mpirun(struct opt_set *set, const struct mpirun_words *words, struct hvd_err *err)
{
    struct opt_given given[LIMIT_MCA_ITEMS];
    struct buf values[LIMIT_MCA_ITEMS];
    char quoted[TEXT_QUOTE_MAX];
    size_t count = 0;
    int rc = 0;

    if (words->bind_to && strcmp(words->bind_to, "none") != 0)
        return err_set(err, HVD_E_UNSUPPORTED,
                       "--bind-to %s: not supported here: workers are not bound; leave it out, and "
                       "bind in the command: sh -c 'exec taskset -c $HVD_SLOT ./train'",
                       text_quote(words->bind_to, strlen(words->bind_to), quoted));
    if (words->map_by && strcmp(words->map_by, "slot") != 0)
        return err_set(err, HVD_E_UNSUPPORTED,
                       "--map-by %s: not supported here: the slots of a host are filled before "
                       "those of the next; leave it out, and say how many each host has: -H "
                       "a:1,b:1",
                       text_quote(words->map_by, strlen(words->map_by), quoted));
    if (words->mca->count > LIMIT_MCA_ITEMS)
        return err_set(
            err, HVD_E_LIMIT,
            "--mca: the option is given more than %d times (LIMIT_MCA_ITEMS); give it fewer times",
            LIMIT_MCA_ITEMS);
    for (size_t i = 0; i < words->mca->count && !rc; i++) {
        given[count].option = NULL;
        buf_init(&values[count], LIMIT_OPTION_TEXT_BYTES);
        rc = take_parameter(set, words->mca->items[i], &values[count], &given[count], err);
        if (given[count].option)
            count++;
        else
            buf_release(&values[count]);
    }
    if (!rc)
        rc = opt_take(set, OPT_COMMAND_LINE, given, count, err);
    while (count)
        buf_release(&values[--count]);
    return rc;
}
