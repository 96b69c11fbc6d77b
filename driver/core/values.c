/*
 * values.c: the values that workers store in the job. agents.c brings the calls of workers,
 * replay.c the records of earlier drivers, compact.c reads. Invariant: a change is told to no
 * worker before its record, and a change that a worker asks for twice is made once; each wait is
 * answered when its key has a value, unless its worker or its round has ended.
 */
#include "driver/core/values.h"

#include "base/hex.h"
#include "base/mem.h"
#include "driver/core/roster.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A STORE record has a value as hexadecimal digits, two for each byte, which are divided among
 * several texts. This is how many digits one text has; the last text may have fewer. */
#define DIGITS_EACH LIMIT_TEXT_BYTES

_Static_assert((size_t)DIGITS_EACH *LIMIT_ADDRESSES >= 2 * (size_t)LIMIT_STORE_VALUE_BYTES,
               "the texts of a record have room for a value");
_Static_assert(LIMIT_STORE_KEY_BYTES <= LIMIT_REASON_BYTES,
               "the text of a record has room for a key");

/* True: the values of this round can still be used: its members train, or have not passed the
 * agreed check (the call of hvd_state_check at which all leave) of a switch. Round 0 stands for the
 * whole job, whose values can always be used. */
bool values_stand(const struct core *core, uint64_t round)
{
    const struct round *current = &core->current;

    return !round || (round == current->number && current->state != ROUND_REVOKED) ||
           (core->last.number && round == core->last.number);
}

/* Sends STORED, the result of a STORE call, to the worker. The value is copied for the message. */
static void values_tell(struct core *core, struct worker *worker, struct msg_stored stored)
{
    struct msg *msg = tell_msg(core, MSG_STORED, worker->incarnation, 0);
    uint8_t *copy = tell_alloc(core, stored.value.length, 1);

    if (copy && stored.value.length)
        memcpy(copy, stored.value.at, stored.value.length);
    stored.value =
        copy ? (struct msg_bytes){ copy, stored.value.length } : (struct msg_bytes){ NULL, 0 };
    msg->u.stored = stored;
    tell_host(core, worker->host, msg);
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* Removes the wait with the index `at`. The last wait of the list takes this index, so a loop that
 * removes some waits begins at the end. */
static void values_drop_wait(struct core *core, size_t at)
{
    struct core_values *values = &core->roster.values;

    mem_free(values->waits.items[at].key);
    values->waits.items[at] = values->waits.items[--values->waits.count];
}

/* A key has got a value: answers all calls of workers that wait for the key, and removes these
 * waits. */
static void values_wake(struct core *core, uint64_t round, const char *key)
{
    const struct value_entry *entry = value_table_find(&core->roster.values.table, round, key);

    for (size_t i = core->roster.values.waits.count; entry && i-- > 0;) {
        const struct value_wait *wait = &core->roster.values.waits.items[i];
        struct worker *worker = roster_worker(core, wait->incarnation);

        if (wait->round != round || strcmp(wait->key, key) != 0)
            continue;
        if (worker)
            values_tell(core, worker,
                        (struct msg_stored){
                            .number = wait->number,
                            .channel = wait->channel,
                            .text = "",
                            .value = {entry->value, entry->length}
            });
        values_drop_wait(core, i);
    }
}

/* ---- records --------------------------------------------------------------------------------- */

/* Writes `value` as hexadecimal digits into `memory`, cut into texts that fit into a record, and
 * returns these texts: their list is in `items`. */
struct msg_texts values_digits(struct msg_bytes value, char *memory, const char **items)
{
    size_t count = 0;

    for (size_t i = 0; i < value.length; i += DIGITS_EACH / 2) {
        size_t bytes = value.length - i < DIGITS_EACH / 2 ? value.length - i : DIGITS_EACH / 2;

        items[count++] = memory;
        hex_write(value.at + i, bytes, memory);
        memory += 2 * bytes + 1;
    }
    return (struct msg_texts){ items, count };
}

/* Writes a STORE record of the change, and notes the number of the worker's call: a call with this
 * number that comes again is only answered. */
static void values_record(struct core *core, struct worker *worker, const struct msg *msg,
                          const struct value_outcome *outcome)
{
    const struct msg_store *call = &msg->u.store;
    bool adds = call->op == STORE_ADD;
    struct msg_bytes value = adds ? outcome->value : call->value;
    struct journal_record *record = tell_record(core, JOURNAL_STORE);
    char *memory = tell_alloc(core, 1, VALUES_DIGITS_MAX);
    const char **items = tell_alloc(core, LIMIT_ADDRESSES, sizeof(*items));

    worker->values = (struct worker_values){ .number = call->number };
    snprintf(worker->values.sum, sizeof(worker->values.sum), "%s", outcome->number);
    if (!memory || !items)
        return; /* no memory is left: the step has failed */
    record->incarnation = worker->incarnation;
    record->round = msg->round;
    record->check = call->number;
    record->text = tell_text(core, "%s", call->key);
    record->code = call->op == STORE_DELETE ? VALUE_DELETED : adds ? VALUE_ADDED : VALUE_SET;
    if (call->op != STORE_DELETE)
        record->addresses = values_digits(value, memory, items);
}

/* Restores a STORE record: the value that was set or deleted, and the number of the worker's last
 * call. HVD_E_CORRUPT: no driver can have written the record. */
int values_replay(struct core *core, const struct journal_record *record)
{
    struct value_table *table = &core->roster.values.table;
    struct worker *worker = roster_worker(core, record->incarnation);
    uint8_t bytes[LIMIT_STORE_VALUE_BYTES];
    struct msg_bytes value = { bytes, 0 };
    int rc = 0;

    for (size_t k = 0; k < record->addresses.count; k++)
        for (const char *at = record->addresses.items[k]; *at; at += 2)
            if (value.length == sizeof(bytes) || !hex_read(at, 1, bytes + value.length++))
                return HVD_E_CORRUPT;
    if (record->code < 0 || record->code >= VALUE_COUNT ||
        strlen(record->text) > LIMIT_STORE_KEY_BYTES ||
        (record->code == VALUE_ADDED && value.length >= VALUE_NUMBER_MAX))
        return HVD_E_CORRUPT;
    if (worker && record->check > worker->values.number) {
        worker->values = (struct worker_values){ .number = record->check };
        if (record->code == VALUE_ADDED || record->code == VALUE_NUMBER)
            memcpy(worker->values.sum, bytes,
                   value.length < VALUE_NUMBER_MAX ? value.length : VALUE_NUMBER_MAX - 1);
    }
    if (record->code == VALUE_NUMBER)
        return 0;
    if (record->code == VALUE_DELETED) {
        (void)value_table_delete(table, record->round, record->text);
        return 0;
    }
    value_table_keep(table, core->current.number, core->last.number);
    rc = value_table_set(table, record->round, record->text, value);
    if (rc == HVD_E_LIMIT) {
        /* The driver that wrote the record knew that all members had left the round before. */
        value_table_keep(table, core->current.number, 0 /* no round before */);
        rc = value_table_set(table, record->round, record->text, value);
    }
    return rc == HVD_E_LIMIT ? HVD_E_CORRUPT : rc;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Handles STORE: a worker sets, reads, adds to or deletes a value, or waits for one (PROTOCOL.md,
 * STORE). A call that changes a value is recorded before it is answered; a WAIT for a key without a
 * value is answered by values_wake later. */
void values_on_store(struct core *core, struct worker *worker, const struct msg *msg)
{
    const struct msg_store *call = &msg->u.store;
    bool changes = value_table_changes(call);
    struct msg_stored stored = { .number = call->number, .channel = call->channel, .text = "" };
    struct value_outcome outcome;

    if (!values_stand(core, msg->round)) {
        CORE_TRACE(core, FACTS(.kind = KIND_VALUE_LATE, .round = msg->round, OF_WORKER(worker)),
                   "a value of round %" PRIu64 " is asked for: that round is over", msg->round);
        return;
    }
    /* The message has come twice: the call is answered with the first result if it is the last
     * one. */
    if (changes && call->number <= worker->values.number) {
        const char *sum = call->op == STORE_ADD ? worker->values.sum : "";

        stored.value = (struct msg_bytes){ (const uint8_t *)sum, strlen(sum) };
        if (call->number == worker->values.number)
            values_tell(core, worker, stored);
        return;
    }
    /* The worker makes a new call, so its earlier wait on the same channel is over. Waits whose
     * worker or round has ended are removed too. */
    for (size_t i = core->roster.values.waits.count; i-- > 0;) {
        const struct value_wait *wait = &core->roster.values.waits.items[i];

        if ((wait->incarnation == worker->incarnation && wait->channel == call->channel) ||
            !roster_worker(core, wait->incarnation) || !values_stand(core, wait->round))
            values_drop_wait(core, i);
    }
    value_table_keep(&core->roster.values.table, core->current.number, core->last.number);
    stored.code = value_table_apply(&core->roster.values.table, msg->round, call, &outcome);
    stored.text = outcome.text;
    stored.value = outcome.value;
    if (stored.code == HVD_E_NOMEM) {
        core_fail(core);
    } else if (call->op == STORE_WAIT && stored.code == HVD_E_NOTFOUND) {
        char *key = mem_strdup(call->key);

        if (!key ||
            VEC_RESERVE(&core->roster.values.waits, 1, LIMIT_WORKERS * (size_t)LIMIT_STORE_CALLS)) {
            mem_free(key);
            core_fail(core);
            return;
        }
        core->roster.values.waits.items[core->roster.values.waits.count++] =
            (struct value_wait){ .incarnation = worker->incarnation,
                                 .number = call->number,
                                 .round = msg->round,
                                 .channel = call->channel,
                                 .key = key };
    } else {
        if (changes && !stored.code)
            values_record(core, worker, msg, &outcome);
        values_tell(core, worker, stored);
        if (changes && !stored.code)
            values_wake(core, msg->round, call->key);
    }
}

void values_release(struct core *core)
{
    while (core->roster.values.waits.count)
        values_drop_wait(core, 0 /* the first of the list */);
    VEC_RELEASE(&core->roster.values.waits);
    value_table_release(&core->roster.values.table);
}
