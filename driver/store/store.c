/*
 * store.c: calls the operations of a store, and checks what holds for every implementation: names
 * of jobs, tokens and writes. The driver's start (driver/job_folder.c), its event loop and the
 * scribe call these functions.
 */
#include "driver/store/store.h"

#include "base/panic.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>

/* Checks the name of a job, which is also the name of its folder and of its keys: letters, digits
 * and . _ -, with neither a dot nor a dash in front. */
int job_name_check(const char *name, struct hvd_err *err)
{
    size_t length = strlen(name);
    char quoted[TEXT_QUOTE_MAX];

    if (length == 0 || length > JOB_NAME_MAX)
        return err_set(err, HVD_E_LIMIT,
                       "%s: the name of a job must have 1 to %d bytes; choose another name",
                       text_quote(name, length, quoted), JOB_NAME_MAX);
    for (size_t i = 0; i < length; i++)
        if (!isascii((unsigned char)name[i]) ||
            !(isalnum((unsigned char)name[i]) || strchr("._-", name[i])) ||
            (i == 0 && (name[i] == '.' || name[i] == '-')))
            return err_set(err, HVD_E_INVAL,
                           "%s: use only letters, digits and . _ - in the name of a job, and "
                           "neither a dot nor a dash in front",
                           text_quote(name, length, quoted));
    return 0;
}

int store_facts(struct store *store, struct job_facts *ret_facts, struct hvd_err *err)
{
    return store->ops->facts(store, ret_facts, err);
}

int store_claim(struct store *store, uint64_t token, const char *who, struct hvd_err *err)
{
    ASSERT(token != 0);
    return store->ops->claim(store, token, who, err);
}

int store_check(struct store *store, struct hvd_err *err)
{
    return store->ops->check(store, err);
}

int store_replay(struct store *store, store_record_fn *each, void *arg, struct hvd_err *err)
{
    return store->ops->replay(store, each, arg, err);
}

int store_blacklist(struct store *store, store_blacklist_fn *each, void *arg, struct hvd_err *err)
{
    return store->ops->blacklist(store, each, arg, err);
}

/* Writes all `writes` in one transaction. A write without anything in it is a bug of the caller. */
int store_write(struct store *store, const struct job_write *writes, size_t count,
                struct hvd_err *err)
{
    for (size_t i = 0; i < count; i++)
        ASSERT(writes[i].record || writes[i].change || writes[i].ended || writes[i].port);
    return store->ops->write(store, writes, count, err);
}

int store_replace(struct store *store, const struct journal_record *records, size_t count,
                  struct hvd_err *err)
{
    return store->ops->replace(store, records, count, err);
}

/* Returns the standbys of the job that the store knows; a store without standbys (a file) returns
 * none. */
void store_peers(struct store *store, struct store_peers *ret_peers)
{
    ret_peers->count = 0;
    if (store->ops->peers)
        store->ops->peers(store, ret_peers);
}

void store_close(struct store *store)
{
    if (store)
        store->ops->close(store);
}
