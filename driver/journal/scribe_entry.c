#include "driver/journal/scribe_entry.h"

#include "base/mem.h"

#include <string.h>

static const char *text_of(const char *text)
{
    return text ? text : "";
}

static size_t record_bytes(const struct journal_record *record)
{
    size_t bytes = sizeof(*record) + (record->members.count + record->holders.count) * 8 +
                   record->addresses.count * sizeof(char *);

    for (size_t i = 0; i < record->addresses.count; i++)
        bytes += strlen(record->addresses.items[i]) + 1;
    return bytes + strlen(text_of(record->host)) + 1 + strlen(text_of(record->text)) + 1;
}

static void *put(char **at, const void *from, size_t bytes)
{
    void *copy = *at;

    if (bytes > 0)
        memcpy(copy, from, bytes);
    *at += bytes;
    return copy;
}

static const char *put_text(char **at, const char *text)
{
    return put(at, text_of(text), strlen(text_of(text)) + 1);
}

/* What is aligned comes first: structs, then ids and pointers, then texts. */
static const struct journal_record *put_record(char **at, const struct journal_record *record)
{
    struct journal_record *copy = put(at, record, sizeof(*record));
    const char **addresses;

    copy->members.items = put(at, record->members.items, record->members.count * 8);
    copy->holders.items = put(at, record->holders.items, record->holders.count * 8);
    addresses = (const char **)(void *)*at;
    *at += record->addresses.count * sizeof(char *);
    for (size_t i = 0; i < record->addresses.count; i++)
        addresses[i] = put_text(at, record->addresses.items[i]);
    copy->addresses.items = addresses;
    copy->host = put_text(at, record->host);
    copy->text = put_text(at, record->text);
    return copy;
}

struct scribe_entry *scribe_entry_create(const struct job_write *write)
{
    size_t bytes = sizeof(struct scribe_entry) + strlen(text_of(write->text)) + 1;
    struct scribe_entry *entry;
    char *at;

    if (write->change)
        bytes += sizeof(*write->change);
    if (write->record)
        bytes += record_bytes(write->record);
    entry = mem_alloc(bytes);
    if (!entry)
        return NULL;
    at = (char *)(entry + 1);
    list_init(&entry->in_queue);
    entry->bytes = bytes;
    entry->write = *write;
    if (write->change)
        entry->write.change = put(&at, write->change, sizeof(*write->change));
    if (write->record)
        entry->write.record = put_record(&at, write->record);
    entry->write.text = put_text(&at, write->text);
    return entry;
}
