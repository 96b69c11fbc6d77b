/*
 * values.h: the values that workers store in the job (PROTOCOL.md, STORE): who changes them, who
 * waits for them, and what a successor of this driver knows of them.
 */
#ifndef DRIVER_CORE_VALUES_H
#define DRIVER_CORE_VALUES_H

#include "driver/core/core_internal.h"

void values_on_store(struct core *core, struct worker *worker, const struct msg *msg);

/* Restores a STORE record of the journal. Returns 0, HVD_E_NOMEM, or HVD_E_CORRUPT for a record
 * that no driver can have written. */
int values_replay(struct core *core, const struct journal_record *record) MUST_CHECK;

/* True: members of this round can still use the round's values. Round 0: the values of the whole
 * job, which can always be used. */
bool values_stand(const struct core *core, uint64_t round);

/* Writes a value in hexadecimal digits into `memory` (2 bytes for each of the value, and
 * LIMIT_ADDRESSES; at most VALUES_DIGITS_MAX bytes), cut into texts of at most LIMIT_TEXT_BYTES,
 * each ended by NUL. A STORE record has these texts in its field `addresses`, so there are at most
 * LIMIT_ADDRESSES of them, and `items` has room for that many. Returns the texts. */
#define VALUES_DIGITS_MAX (2 * LIMIT_STORE_VALUE_BYTES + LIMIT_ADDRESSES)
struct msg_texts values_digits(struct msg_bytes value, char *memory, const char **items);

void values_release(struct core *core);

#endif
