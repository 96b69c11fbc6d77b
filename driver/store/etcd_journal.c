/*
 * etcd_journal.c: the journal and the blacklist of a job in etcd: reading them page by page, and
 * writing steps. etcd_store.c has these functions in its table of operations. Invariant: a step
 * counts with its last part, and each part creates a key of the journal, so a part that is carried
 * out twice or late changes nothing the second time.
 */
#include "driver/store/etcd_store_internal.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"
#include "driver/store/record_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_TEXT_MAX (LIMIT_HOST_NAME_BYTES + 32)
#define PAGE_MOST    512 /* the most keys that one request reads */
#define REPORT       "; this is a bug of hvd-elastic, please report it"

/* Writes the name of the journal's key with this number: 16 hexadecimal digits, so that etcd's
 * order of keys is that of the numbers. */
static void etcd_journal_key(uint64_t number, char key[KEY_TEXT_MAX])
{
    snprintf(key, KEY_TEXT_MAX, "journal/%016" PRIx64, number);
}

/* ---- reading the journal and the blacklist ----------------------------------------------------
 */

/* Takes one key of the journal that was read; *number is the number that it must have. Its value is
 * appended to `step`; with the last key of a step (first byte not '+') the records of the step are
 * given to `each`. */
static int etcd_replay_pair(struct etcd_store *self, const struct etcd_pair *pair, uint64_t *number,
                            struct buf *step, store_record_fn *each, void *arg, struct hvd_err *err)
{
    const struct buf *value = &pair->value;
    char key[KEY_TEXT_MAX];
    const char *name = buf_text(&pair->key) + strlen(self->base);
    struct journal_record record;
    struct span lines, line;
    int rc;

    /* A journal that was compacted begins with the key that replaces all before it. */
    if (*number == 1 && value->length && *value->data == '=' &&
        pair->key.length > strlen(self->base) + sizeof("journal"))
        *number = strtoull(name + sizeof("journal"), NULL, 16);
    etcd_journal_key(*number, key);
    if (pair->key.length <= strlen(self->base) || strcmp(name, key) != 0)
        return err_set(err, HVD_E_CORRUPT,
                       "%s%s: the key is missing in etcd; restore the keys of the job from a "
                       "snapshot of etcd",
                       self->base, key);
    if (!value->length || !strchr("+.=", *value->data) || !*value->data)
        return err_set(err, HVD_E_CORRUPT,
                       "%s%s: the value in etcd is damaged; restore the keys of the job from a "
                       "snapshot of etcd",
                       self->base, key);
    rc = buf_append(step, value->data + 1, value->length - 1);
    if (rc)
        return err_set(err, rc,
                       "%s%s: the step of the journal that ends with this key cannot be read: %s",
                       self->base, key, err_text(rc));
    if (*value->data == '+') {
        ++*number;
        return 0;
    }
    lines = etcd_span(step);
    if (lines.length)
        lines.length--; /* the end of the last line: span_next would find an empty part after it */
    while (!rc && lines.length && span_next(&lines, '\n', &line)) {
        rc = etcd_read_record(&self->record, line, self->next_record, &record, err);
        if (!rc)
            rc = each ? each(arg, &record, err) : 0;
        self->next_record++;
    }
    buf_clear(step);
    self->next_key = ++*number;
    return rc;
}

/* Reads the journal page by page, and gives its records to `each` (NULL: only the next numbers are
 * needed). A page that is too long for one answer is tried again with fewer keys. */
int etcd_store_replay(struct store *store, store_record_fn *each, void *arg, struct hvd_err *err)
{
    struct etcd_store *self = etcd_of(store);
    uint64_t number = 1;
    size_t limit = PAGE_MOST, got;
    char key[KEY_TEXT_MAX];
    struct etcd_pair pair;
    struct etcd_txn txn;
    struct buf step;
    json_t *answer = NULL;
    int rc = 0;

    etcd_set_patience(self->etcd, ETCD_OPEN_PATIENCE_US);
    self->next_key = self->next_record = 1;
    etcd_pair_init(&pair);
    buf_init(&step, LIMIT_ETCD_STEP_BYTES);
    do {
        etcd_journal_key(number, key);
        rc = etcd_range(self->etcd, self->base, "journal/", key, limit, &answer, err);
        got = rc ? 0 : json_array_size(etcd_kvs(answer));
        for (size_t i = 0; i < got && !rc; i++) {
            rc = etcd_pair_at(etcd_kvs(answer), i, &pair, err);
            if (!rc)
                rc = etcd_replay_pair(self, &pair, &number, &step, each, arg, err);
        }
        json_decref(answer);
        answer = NULL;
        if (rc == HVD_E_LIMIT && !got && limit > 1) {
            limit /= 2;
            rc = 0;
            got = limit; /* the loop goes on */
        } else if (!rc && self->revision) {
            rc = etcd_keep(self, err); /* a long journal takes longer than a lease */
        }
    } while (!rc && got == limit);
    buf_release(&step);
    etcd_pair_release(&pair);
    /* The beginning of a step that a former driver has not finished is removed. */
    if (!rc && self->revision && number != self->next_key) {
        etcd_journal_key(self->next_key, key);
        etcd_begin_fenced(self, &txn);
        etcd_txn_delete_from(&txn, key, "journal/");
        rc = etcd_run_fenced(self, &txn, err);
    }
    self->tail_known = !rc && self->revision;
    return rc;
}

/* Reads the keys of the blacklist page by page, and gives their records to `each`. */
int etcd_store_blacklist(struct store *store, store_blacklist_fn *each, void *arg,
                         struct hvd_err *err)
{
    static const char folder[] = "blacklist/";
    struct etcd_store *self = etcd_of(store);
    struct blacklist_record record;
    char from[KEY_TEXT_MAX + 1];
    struct etcd_pair pair;
    json_t *answer = NULL;
    size_t got;
    int rc;

    etcd_set_patience(self->etcd, ETCD_OPEN_PATIENCE_US);
    snprintf(from, sizeof(from), "%s", folder);
    etcd_pair_init(&pair);
    do {
        rc = etcd_range(self->etcd, self->base, folder, from, PAGE_MOST, &answer, err);
        got = rc ? 0 : json_array_size(etcd_kvs(answer));
        for (size_t i = 0; i < got && !rc; i++) {
            rc = etcd_pair_at(etcd_kvs(answer), i, &pair, err);
            if (!rc)
                rc = etcd_read_blacklist(etcd_span(&pair.value), &record, err);
            if (!rc)
                rc = each(arg, &record, err);
        }
        /* The next page begins with the last key. Its record would come twice, so the key is made
         * longer by a byte. */
        if (!rc && got && pair.key.length > strlen(self->base))
            snprintf(from, sizeof(from), "%s!", buf_text(&pair.key) + strlen(self->base));
        json_decref(answer);
        answer = NULL;
    } while (!rc && got == PAGE_MOST);
    etcd_pair_release(&pair);
    return rc;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* A key of the blacklist in etcd that a step changes. */
struct etcd_change {
    const char *host;
    uint32_t slot;
    const struct blacklist_record *record; /* NULL: the key is deleted */
};

/* Everything that one call of store_write writes to etcd, made ready by etcd_make_step. */
struct etcd_step {
    struct buf lines;
    uint64_t records;
    struct etcd_change *changes;
    size_t change_count;
    struct job_facts facts;
    bool new_facts;
};

/* Adds a change of a key of the blacklist to the step. The newest change of a key is added first,
 * and an older change of the same key is left out. */
static void etcd_add_change(struct etcd_step *step, struct etcd_change change)
{
    for (size_t i = 0; i < step->change_count; i++)
        if (step->changes[i].slot == change.slot && !strcmp(step->changes[i].host, change.host))
            return; /* a later write of the same key is in the list already */
    step->changes[step->change_count++] = change;
}

/* Makes from the writes of one call what goes to etcd: the journal's records as lines, the changes
 * of the blacklist, and new facts of the job. Nothing is sent yet. */
static int etcd_make_step(struct etcd_store *self, struct etcd_step *step,
                          const struct job_write *writes, size_t count, struct hvd_err *err)
{
    char text[JOURNAL_LINE_MAX];
    const char *wrong;
    int rc = 0;

    buf_init(&step->lines, LIMIT_ETCD_STEP_BYTES);
    step->facts = self->facts;
    step->changes = mem_zalloc_array(2 * count, sizeof(*step->changes));
    if (!step->changes)
        return err_set(err, HVD_E_NOMEM, "no memory to write to etcd; free memory on this host");
    for (size_t i = 0; i < count; i++) {
        const struct job_write *write = &writes[i];
        const struct journal_record *record = write->record;

        wrong = record ? record_wrong(record) : NULL;
        if (wrong)
            return err_set(err, HVD_E_INVAL, "the journal cannot hold %s: %s" REPORT,
                           journal_kind_name(record->kind), wrong);
        if (record)
            rc = etcd_write_record(&step->lines, self->next_record + step->records++, record);
        if (rc)
            return err_set(err, rc, "the journal's record %s cannot be made ready for etcd: %s%s",
                           journal_describe(record, text), err_text(rc),
                           rc == HVD_E_NOMEM ? "; free memory on this host" : REPORT);
        if (write->port)
            step->facts.port = write->port;
        if (write->ended) {
            step->facts.ended = true;
            step->facts.code = write->code;
            blacklist_reason_set(step->facts.text, write->text ? write->text : "");
        }
        step->new_facts = step->new_facts || write->port || write->ended;
    }
    /* The newest changes of the blacklist come first: etcd refuses a transaction that writes a key
     * twice, so of several changes of a key only the newest is written. */
    for (size_t i = count; i-- > 0;) {
        const struct blacklist_change *change = writes[i].change;

        if (!change || change->none)
            continue;
        if (change->evicted)
            etcd_add_change(
                step, (struct etcd_change){ change->evicted_host, change->evicted_slot, NULL });
        etcd_add_change(step, (struct etcd_change){ change->record.host, change->record.slot,
                                                    &change->record });
    }
    return 0;
}

/* Adds the change of one key of the blacklist to the transaction: its new value, or its
 * deletion. */
static void etcd_put_change(struct etcd_txn *txn, const struct etcd_change *change)
{
    char key[KEY_TEXT_MAX];
    struct buf value;

    if (change->slot == BLACKLIST_WHOLE_HOST)
        snprintf(key, sizeof(key), "blacklist/%s/host", change->host);
    else
        snprintf(key, sizeof(key), "blacklist/%s/%" PRIu32, change->host, change->slot);
    if (!change->record) {
        etcd_txn_delete(txn, key, false /* this key alone */);
        return;
    }
    buf_init(&value, LIMIT_ETCD_VALUE_BYTES);
    if (!txn->rc)
        txn->rc = etcd_write_blacklist(&value, change->record);
    etcd_txn_put(txn, key, etcd_span(&value), 0 /* no lease */);
    buf_release(&value);
}

/* Judges a transaction whose comparisons did not hold: another driver is the owner, or the same
 * transaction was carried out before, and its answer was lost. Returns HVD_E_LOST: the former; 0:
 * the latter; HVD_E_CORRUPT: another program has written the key. */
static int etcd_judge_write(struct etcd_store *self, const json_t *answer, const char *key,
                            struct span value, struct hvd_err *err)
{
    const json_t *owner = etcd_txn_kvs(answer, 0), *written = etcd_txn_kvs(answer, 1);
    struct etcd_pair pair;
    bool same = false;
    int rc = 0;

    etcd_pair_init(&pair);
    if (owner)
        rc = etcd_pair_at(owner, 0, &pair, err);
    if (!rc && pair.revision != self->revision)
        rc = etcd_lost(owner, err);
    if (!rc && written)
        rc = etcd_pair_at(written, 0, &pair, err);
    if (!rc && written)
        same =
            pair.value.length == value.length && !memcmp(pair.value.data, value.at, value.length);
    if (!rc && !same)
        rc = err_set(err, HVD_E_CORRUPT,
                     "%s%s: another program has written this key of the job in etcd; keep other "
                     "programs away from the keys of the job",
                     self->base, key);
    etcd_pair_release(&pair);
    return rc;
}

/* Writes part number `part` of `parts`: a piece of the lines, some changes of the blacklist, and
 * with the last part the facts. */
static int etcd_write_part(struct etcd_store *self, const struct etcd_step *step, size_t part,
                           size_t parts, struct hvd_err *err)
{
    const size_t most = LIMIT_ETCD_VALUE_BYTES - 1;
    size_t from = part * most < step->lines.length ? part * most : step->lines.length;
    size_t length = step->lines.length - from < most ? step->lines.length - from : most;
    bool last = part + 1 == parts, held = false;
    json_t *answer = NULL;
    char key[KEY_TEXT_MAX];
    struct etcd_txn txn;
    struct buf value;
    int rc;

    etcd_journal_key(self->next_key + part, key);
    etcd_begin_fenced(self, &txn);
    etcd_txn_compare(&txn, key, "VERSION", 0 /* no such key */);
    buf_init(&value, LIMIT_ETCD_VALUE_BYTES);
    rc = buf_append(&value, last ? "." : "+", 1);
    if (!rc && length)
        rc = buf_append(&value, step->lines.data + from, length);
    if (rc)
        txn.rc = rc;
    etcd_txn_put(&txn, key, etcd_span(&value), 0 /* no lease */);
    for (size_t i = part * LIMIT_ETCD_CHANGES;
         i < step->change_count && i < (part + 1) * LIMIT_ETCD_CHANGES; i++)
        etcd_put_change(&txn, &step->changes[i]);
    if (last && step->new_facts) {
        struct buf facts;

        buf_init(&facts, LIMIT_ETCD_VALUE_BYTES);
        if (!txn.rc)
            txn.rc = etcd_write_facts(&facts, &step->facts);
        etcd_txn_put(&txn, "facts", etcd_span(&facts), 0 /* no lease */);
        buf_release(&facts);
    }
    etcd_txn_else(&txn);
    etcd_txn_get(&txn, "owner");
    etcd_txn_get(&txn, key);
    rc = etcd_txn_run(&txn, self->etcd, &held, &answer, err);
    if (!rc && !held)
        rc = etcd_judge_write(self, answer, key, etcd_span(&value), err);
    json_decref(answer);
    buf_release(&value);
    return rc;
}

/* Writes a step. A step that is too long for one transaction goes into several; it counts only with
 * its last part. Failures of hosts come before the records that charge them, so a driver that dies
 * in between has at most charged a failure early. */
int etcd_store_write(struct store *store, const struct job_write *writes, size_t count,
                     struct hvd_err *err)
{
    const size_t most = LIMIT_ETCD_VALUE_BYTES - 1;
    struct etcd_store *self = etcd_of(store);
    struct etcd_step step = { .records = 0 };
    size_t parts, more;
    int rc = 0;

    ASSERT(self->revision != 0);
    if (!self->tail_known)
        rc = etcd_store_replay(store, NULL, NULL, err);
    etcd_set_patience(self->etcd, 0 /* one try on each server */);
    if (!rc)
        rc = etcd_make_step(self, &step, writes, count, err);
    if (!rc)
        rc = etcd_keep(self, err);
    parts = step.lines.length ? (step.lines.length + most - 1) / most : 1;
    more = (step.change_count + LIMIT_ETCD_CHANGES - 1) / LIMIT_ETCD_CHANGES;
    parts = more > parts ? more : parts;
    for (size_t part = 0; part < parts && !rc; part++)
        rc = etcd_write_part(self, &step, part, parts, err);
    if (!rc) {
        self->next_key += parts;
        self->next_record += step.records;
        self->facts = step.facts;
    }
    explicit_bzero(&step.facts, sizeof(step.facts));
    buf_release(&step.lines);
    mem_free(step.changes);
    return rc;
}

/* Writes the records into one key, and deletes all keys of the journal before it, in one
 * transaction. The records are numbered from 1 again. */
int etcd_store_replace(struct store *store, const struct journal_record *records, size_t count,
                       struct hvd_err *err)
{
    struct etcd_store *self = etcd_of(store);
    json_t *answer = NULL;
    char key[KEY_TEXT_MAX];
    struct etcd_txn txn;
    struct buf value;
    bool held = false;
    int rc = 0;

    ASSERT(self->revision != 0);
    if (!self->tail_known)
        rc = etcd_store_replay(store, NULL, NULL, err);
    if (rc)
        return rc;
    etcd_set_patience(self->etcd, 0 /* one try on each server */);
    buf_init(&value, LIMIT_ETCD_BASE_BYTES);
    rc = buf_append(&value, "=", 1);
    for (size_t i = 0; i < count && !rc; i++)
        rc =
            record_wrong(&records[i]) ? HVD_E_INVAL : etcd_write_record(&value, i + 1, &records[i]);
    if (rc) {
        buf_release(&value);
        return err_set(err, rc,
                       "the journal in etcd cannot be compacted: %s; the driver tries again later",
                       err_text(rc));
    }
    etcd_journal_key(self->next_key, key);
    etcd_begin_fenced(self, &txn);
    etcd_txn_compare(&txn, key, "VERSION", 0 /* no such key */);
    etcd_txn_put(&txn, key, etcd_span(&value), 0 /* no lease */);
    etcd_txn_delete_before(&txn, key, "journal/");
    etcd_txn_else(&txn);
    etcd_txn_get(&txn, "owner");
    etcd_txn_get(&txn, key);
    rc = etcd_txn_run(&txn, self->etcd, &held, &answer, err);
    if (!rc && !held)
        rc = etcd_judge_write(self, answer, key, etcd_span(&value), err);
    json_decref(answer);
    buf_release(&value);
    /* the transaction may have been carried out, or be carried out later: the next write reads the
     * journal's end anew */
    if (rc) {
        self->tail_known = false;
        return rc;
    }
    self->next_key++;
    self->next_record = count + 1;
    return 0;
}
