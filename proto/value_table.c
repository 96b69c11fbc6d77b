/*
 * value_table.c: small values of a job, under their keys. Called by driver/core/values.c for the
 * calls of workers, by its replay for the journal, and by worker/store.c in a program that runs
 * alone. Invariant: the entries are sorted by round and key, no two are equal, and `bytes` is what
 * they cost together, at most LIMIT_STORE_BYTES.
 */
#include "proto/value_table.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The bytes that an entry counts beside those of its key and value. So the number of entries is
 * bounded too, also if all values are empty. */
#define VALUE_OVERHEAD_BYTES 64
#define ENTRIES_MAX          (LIMIT_STORE_BYTES / VALUE_OVERHEAD_BYTES)

/* Returns what an entry adds to the bytes of its table. */
static size_t value_table_cost(const char *key, size_t length)
{
    return VALUE_OVERHEAD_BYTES + strlen(key) + length;
}

void value_table_release(struct value_table *table)
{
    struct value_entry *entry;

    VEC_EACH (entry, &table->entries) {
        mem_free(entry->key);
        mem_free(entry->value);
    }
    VEC_RELEASE(&table->entries);
    table->bytes = 0;
}

/* Returns the index of the first entry that is not before this round and key in the order of the
 * table: there the entry is, or is to be inserted. *ret_found true: it is there. */
static size_t value_table_place(const struct value_table *table, uint64_t round, const char *key,
                                bool *ret_found)
{
    size_t low = 0, high = table->entries.count;

    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct value_entry *entry = &table->entries.items[middle];
        int order =
            entry->round != round ? (entry->round < round ? -1 : 1) : strcmp(entry->key, key);

        if (!order)
            *ret_found = true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct value_entry *value_table_find(const struct value_table *table, uint64_t round,
                                           const char *key)
{
    bool found;
    size_t at = value_table_place(table, round, key, &found);

    return found ? &table->entries.items[at] : NULL;
}

/* Sets the value of a key, in an entry that exists or a new one. All memory is allocated before the
 * table changes, so a failure changes nothing. */
int value_table_set(struct value_table *table, uint64_t round, const char *key,
                    struct msg_bytes value)
{
    bool found;
    size_t at = value_table_place(table, round, key, &found);
    size_t before = found ? value_table_cost(key, table->entries.items[at].length) : 0;
    size_t after = table->bytes - before + value_table_cost(key, value.length);
    struct value_entry *entry;
    uint8_t *copy;
    char *name = NULL;

    if (after > LIMIT_STORE_BYTES)
        return HVD_E_LIMIT;
    copy = mem_alloc(value.length ? value.length : 1);
    if (!found && copy)
        name = mem_strdup(key);
    if (!copy || (!found && (!name || VEC_RESERVE(&table->entries, 1, ENTRIES_MAX)))) {
        mem_free(copy);
        mem_free(name);
        return HVD_E_NOMEM;
    }
    if (value.length)
        memcpy(copy, value.at, value.length);
    entry = table->entries.items + at;
    if (found) {
        mem_free(entry->value);
    } else {
        memmove(entry + 1, entry, (table->entries.count - at) * sizeof(*entry));
        table->entries.count++;
        *entry = (struct value_entry){ .round = round, .key = name };
    }
    entry->value = copy;
    entry->length = value.length;
    table->bytes = after;
    return 0;
}

/* Removes the entry with this index, and frees its key and value. */
static void value_table_remove(struct value_table *table, size_t at)
{
    struct value_entry *entry = &table->entries.items[at];

    table->bytes -= value_table_cost(entry->key, entry->length);
    mem_free(entry->key);
    mem_free(entry->value);
    table->entries.count--;
    memmove(entry, entry + 1, (table->entries.count - at) * sizeof(*entry));
}

int value_table_delete(struct value_table *table, uint64_t round, const char *key)
{
    bool found;
    size_t at = value_table_place(table, round, key, &found);

    if (!found)
        return HVD_E_NOTFOUND;
    value_table_remove(table, at);
    return 0;
}

/* Called when a round begins: deletes the values of rounds that are over. `round` and `other` are
 * kept, and so are the values of the job (round 0). */
void value_table_keep(struct value_table *table, uint64_t round, uint64_t other)
{
    for (size_t i = table->entries.count; i-- > 0;) {
        uint64_t of = table->entries.items[i].round;

        if (of && of != round && of != other)
            value_table_remove(table, i);
    }
}

bool value_table_changes(const struct msg_store *call)
{
    return call->op != STORE_GET && call->op != STORE_WAIT;
}

/* Reads a decimal number of 64 bits, which may have a minus sign. false: the bytes are no such
 * number. */
static bool value_read_number(struct msg_bytes bytes, int64_t *ret_number)
{
    bool negative = bytes.length && bytes.at[0] == '-';
    int64_t number = 0;

    /* no digit follows the sign, or there is no byte at all */
    if (bytes.length == (size_t)negative)
        return false;
    for (size_t i = negative; i < bytes.length; i++) {
        int digit = bytes.at[i] - '0';

        if (digit < 0 || digit > 9 || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, negative ? -digit : digit, &number))
            return false;
    }
    *ret_number = number;
    return true;
}

/* Makes a STORE_ADD: adds the number of the call to the present value (NULL: the key has none); a
 * key without a value counts as 0. */
static int value_table_add(struct value_table *table, uint64_t round, const struct msg_store *call,
                           const struct value_entry *present, struct value_outcome *outcome)
{
    int64_t sum = 0, amount;
    int length;

    if (!value_read_number(call->value, &amount)) {
        outcome->text = "the amount is no decimal number of 64 bits";
        return HVD_E_INVAL;
    }
    if (present &&
        !value_read_number((struct msg_bytes){ present->value, present->length }, &sum)) {
        outcome->text = "the value of this key is no decimal number, so nothing can be added to it";
        return HVD_E_INVAL;
    }
    if (__builtin_add_overflow(sum, amount, &sum)) {
        outcome->text = "the sum has more than 64 bits";
        return HVD_E_LIMIT;
    }
    length = snprintf(outcome->number, sizeof(outcome->number), "%" PRId64, sum);
    outcome->value = (struct msg_bytes){ (const uint8_t *)outcome->number, (size_t)length };
    return value_table_set(table, round, call->key, outcome->value);
}

/* Makes one call of a worker: reads or changes the value of its key. *ret_outcome has the value for
 * the answer, or the reason of the failure in words. A call that fails changes nothing. */
int value_table_apply(struct value_table *table, uint64_t round, const struct msg_store *call,
                      struct value_outcome *ret_outcome)
{
    const struct value_entry *present = value_table_find(table, round, call->key);
    int rc = HVD_E_INVAL;

    *ret_outcome = (struct value_outcome){ .text = "" };
    switch ((enum msg_store_op)call->op) {
    case STORE_SET: rc = value_table_set(table, round, call->key, call->value); break;
    case STORE_GET:
    case STORE_WAIT:
        if (present)
            ret_outcome->value = (struct msg_bytes){ present->value, present->length };
        rc = present ? 0 : HVD_E_NOTFOUND;
        break;
    case STORE_ADD: rc = value_table_add(table, round, call, present, ret_outcome); break;
    case STORE_COMPARE_SET:
        if (!present && !call->absent) {
            rc = HVD_E_NOTFOUND;
        } else if (present && (call->absent || present->length != call->expected.length ||
                               (present->length &&
                                memcmp(present->value, call->expected.at, present->length) != 0))) {
            ret_outcome->text = "the key has another value";
            ret_outcome->value = (struct msg_bytes){ present->value, present->length };
            rc = HVD_E_MISMATCH;
        } else {
            rc = value_table_set(table, round, call->key, call->value);
        }
        break;
    case STORE_DELETE: rc = value_table_delete(table, round, call->key); break;
    case STORE_OP_COUNT: break;
    }
    if (rc == HVD_E_NOTFOUND)
        ret_outcome->text = "the key has no value";
    if (rc == HVD_E_LIMIT && !*ret_outcome->text)
        ret_outcome->text = "the values of the job would take more than 1 MiB (LIMIT_STORE_BYTES); "
                            "delete values that are not needed any more";
    return rc;
}
