/*
 * fuzz_batch.c: a text that a batch system may give to its job. The first byte says how the rest is
 * read: 'n': a host a line; 'l': names between blanks; 'p': names and numbers; 'q': lines of SGE.
 * Any other byte is 'n' with 1024 slots for each line.
 */
#include "discovery/batch.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A text that is refused must leave the set unchanged, and the error must name the text. A text
 * that is accepted must give a valid set with a host. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hvd_err err = { .text = "" };
    enum batch_grammar grammar = BATCH_NODES;
    uint32_t slots = 1;
    struct hosts hosts;
    uint64_t total = 0;
    char *copy; /* a block of its own, so that the sanitizer sees a read past its end */

    if (size < 1)
        return 0;
    switch (data[0]) {
    case 'n': break;
    case 'l': grammar = BATCH_NAMES; break;
    case 'p': grammar = BATCH_PAIRS; break;
    case 'q': grammar = BATCH_QUEUES; break;
    default: slots = LIMIT_SLOTS_PER_HOST; break;
    }
    copy = mem_strndup((const char *)data + 1, size - 1);
    hosts_init(&hosts);
    ASSERT(copy && hosts_add(&hosts, "left-alone", 1) == 0);
    if (hosts_parse_batch(grammar, (struct span){ copy, size - 1 }, "fuzz", slots, &hosts, &err)) {
        ASSERT(!strncmp(err.text, "fuzz: ", 6));
        ASSERT(hosts.count == 1 && hosts_find(&hosts, "left-alone"));
    }
    ASSERT(hosts.count && hosts.count <= LIMIT_HOSTS);
    for (size_t i = 0; i < hosts.count; i++) {
        const struct host *host = &hosts.items[i];

        ASSERT(host->slots <= LIMIT_SLOTS_PER_HOST && hosts_find(&hosts, host->name) == host);
        ASSERT(host_name_check(host->name, strlen(host->name), NULL) == 0);
        total += host->slots;
    }
    ASSERT(total <= LIMIT_SLOTS);
    hosts_release(&hosts);
    mem_free(copy);
    return 0;
}
