/*
 * core_script.h: the words of core_tape.h's scripts. Private to the tape.
 */
#ifndef TESTS_LIB_CORE_SCRIPT_H
#define TESTS_LIB_CORE_SCRIPT_H

#include "tests/lib/core_tape.h"

#define SCRIPT_WORDS_MAX 24

struct words {
    struct core_tape *tape;
    char text[512]; /* of the line, cut into words */
    const char *word[SCRIPT_WORDS_MAX];
    size_t count;
};

void script_cut(struct words *words, const char *line);

/* The value of KEY=VALUE, or NULL. */
const char *script_value(const struct words *words, const char *key);

/* The i-th word that is no KEY=VALUE; "" when there is none. Word 0 is the verb. */
const char *script_plain(const struct words *words, size_t i);

uint64_t script_number(const char *text, uint64_t otherwise);

/* "exit1", "sig9", "silent". */
void script_ended(const char *text, uint32_t *ret_ended, int32_t *ret_value);

/* "a:1" as a seat. Returns the host. */
const char *script_seat(struct words *words, const char *text, uint32_t *ret_slot);

/* Takes the next incarnation off "1,3-5"; false when there is none left. */
struct script_ids {
    const char *at;
    uint64_t next, last;
};
bool script_next_id(struct script_ids *ids, uint64_t *ret_id);

#endif
