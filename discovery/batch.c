/*
 * batch.c: reads the hosts of a batch job. discovery/sources/batch.c calls it with the text of a
 * variable or file that LSF, PBS, SGE or Cobalt has made. A text is taken whole or not at all: the
 * first error ends the reading, names its line, and leaves the caller's hosts as they were.
 */
#include "discovery/batch.h"

#include "base/limits.h"

#include <inttypes.h>
#include <string.h>

/* Returns the next word of *rest, and moves *rest behind that word. The word is empty if only
 * blanks are left. */
static struct span batch_word(struct span *rest)
{
    struct span word = span_trim(*rest);
    size_t length = 0;

    while (length < word.length && word.at[length] != ' ' && word.at[length] != '\t')
        length++;
    *rest = (struct span){ word.at + length, word.length - length };
    word.length = length;
    return word;
}

/* Reads a host, and with a grammar that counts (`is_counted`) the number of its slots behind it,
 * again and again until the end of the text. The first error ends the reading, and *ret_hosts is
 * then unchanged. */
int hosts_parse_batch(enum batch_grammar grammar, struct span text, const char *source,
                      uint32_t slots_per_line, struct hosts *ret_hosts, struct hvd_err *err)
{
    bool is_counted = grammar == BATCH_PAIRS || grammar == BATCH_QUEUES;
    char name[LIMIT_HOST_NAME_BYTES + 1], quoted[TEXT_QUOTE_MAX];
    struct hosts hosts;
    struct span line, word;
    uint64_t total = 0;
    uint32_t number = 0;
    int rc = 0;

    if (text.length > LIMIT_HOST_TEXT_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "%s: longer than LIMIT_HOST_TEXT_BYTES (%d); ask for fewer hosts", source,
                       LIMIT_HOST_TEXT_BYTES);
    hosts_init(&hosts);
    while (!rc && span_next(&text, '\n', &line)) {
        number++;
        while (!rc && (word = batch_word(&line)).length) {
            uint64_t slots = slots_per_line;
            struct span count = is_counted ? batch_word(&line) : (struct span){ NULL, 0 };

            if (is_counted && !count.length)
                rc = err_set(err, HVD_E_INVAL,
                             "%s: no number of slots follows this host; write one after each host",
                             text_quote(word.at, word.length, quoted));
            else if (is_counted)
                rc = text_parse_u64(count, 0, LIMIT_SLOTS_PER_HOST, "the number of slots", &slots,
                                    err);
            if (!rc)
                rc = host_name_check(word.at, word.length, err);
            if (!rc) {
                memcpy(name, word.at, word.length);
                name[word.length] = '\0';
                total += slots;
                rc = total > LIMIT_SLOTS        ? HVD_E_LIMIT
                     : hosts_find(&hosts, name) ? hosts_add_slots(&hosts, name, (uint32_t)slots)
                                                : hosts_add(&hosts, name, (uint32_t)slots);
                if (rc == HVD_E_LIMIT)
                    err_set(err, rc,
                            "%s: with this host there are more than %d hosts (LIMIT_HOSTS), %d "
                            "slots (LIMIT_SLOTS), or %d slots of a host (LIMIT_SLOTS_PER_HOST); "
                            "ask the batch system for fewer",
                            name, LIMIT_HOSTS, LIMIT_SLOTS, LIMIT_SLOTS_PER_HOST);
                else if (rc)
                    err_set(err, rc, "%s: %s", name, err_text(rc));
            }
            /* The rest of such a line describes the queue. */
            if (grammar == BATCH_QUEUES)
                break;
            if (!rc && grammar == BATCH_NODES && (word = batch_word(&line)).length)
                rc = err_set(err, HVD_E_INVAL, "%s: a second word; write one host a line",
                             text_quote(word.at, word.length, quoted));
        }
        if (rc)
            err_prefix(err, rc, "%s: line %" PRIu32, source, number);
    }
    if (!rc && !hosts.count)
        rc = err_set(err, HVD_E_INVAL, "%s: names no host; list at least one", source);
    if (!rc)
        hosts_move(&hosts, ret_hosts);
    hosts_release(&hosts);
    return rc;
}
