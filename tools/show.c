#include "tools/show.h"

#include "base/text.h"
#include "base/time.h"
#include "discovery/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_COLUMN_MIN 20
#define NAME_COLUMN_MAX 48

void show_change(const char *source, const struct diff *diff)
{
    char described[DIFF_TEXT_MAX];
    char quoted[TEXT_QUOTE_MAX];
    size_t length = strlen(source);
    bool clean = text_is_clean(source, length) && !strchr(source, '\n');

    printf("%s: %s\n", clean ? source : text_quote(source, length, quoted),
           diff_describe(diff, described));
}

void show_key(const struct book *book, const char *host, uint32_t slot)
{
    struct blacklist_verdict verdict = blacklist_verdict(&book->list, host, slot, book->now_us);
    char sentence[BLACKLIST_SENTENCE_MAX];
    char key[BLACKLIST_KEY_TEXT_MAX];

    printf("%s: %s\n", blacklist_key_format(host, slot, key),
           blacklist_sentence(&verdict, book->now_us, sentence));
}

static const char *format_ago(int64_t ago_us, char text[TIME_TEXT_MAX + 8])
{
    char time[TIME_TEXT_MAX];

    if (ago_us < 0)
        return "in the future"; /* the clock was set back since */
    snprintf(text, TIME_TEXT_MAX + 8, "%s ago", time_format(ago_us / TIME_S * TIME_S, time));
    return text;
}

static int show_event(void *arg, const struct blacklist_event *event)
{
    const struct book *book = arg;
    char key[BLACKLIST_KEY_TEXT_MAX];
    char ago[TIME_TEXT_MAX + 8];

    printf("      %s: %s: %s%s\n", format_ago(book->wall_us - event->wall_us, ago),
           blacklist_key_format(event->host, event->slot, key), event->reason,
           event->counted ? "" : " (not counted)");
    return 0;
}

static int show_history(struct book *book, const char *host, struct hvd_err *err)
{
    return blacklist_store_history(book->store, host, show_event, book, err);
}

/* How many slots of the host may be used now. */
static uint32_t usable_slots(const struct book *book, const struct host *host)
{
    uint32_t usable = 0;

    if (!book)
        return host->slots;
    for (uint32_t slot = 0; slot < host->slots; slot++) {
        struct blacklist_verdict verdict =
            blacklist_verdict(&book->list, host->name, slot, book->now_us);

        usable += verdict.state == BLACKLIST_OK;
    }
    return usable;
}

/* One line for the host, or for one slot of it, when something is held against it. */
static void show_verdict(const struct book *book, const struct host *host, uint32_t slot)
{
    struct blacklist_verdict verdict =
        blacklist_verdict(&book->list, host->name, slot, book->now_us);
    char sentence[BLACKLIST_SENTENCE_MAX];

    if ((verdict.state == BLACKLIST_OK && verdict.failures == 0) || verdict.by_host)
        return;
    blacklist_sentence(&verdict, book->now_us, sentence);
    if (slot == BLACKLIST_WHOLE_HOST)
        printf("      host: %s\n", sentence);
    else
        printf("      slot %" PRIu32 ": %s\n", slot, sentence);
}

static int show_host(struct book *book, bool history, const struct host *host, int column,
                     uint64_t *next_rank, struct hvd_err *err)
{
    char name[HOST_NAME_TEXT_MAX];
    uint32_t usable = usable_slots(book, host);

    printf("  %-*s %4" PRIu32 " slot%s  ", column, host_name_format(host->name, name), host->slots,
           host->slots == 1 ? " " : "s");
    if (usable == 0)
        printf("not used\n");
    else if (usable == 1)
        printf("rank %" PRIu64 "\n", *next_rank);
    else
        printf("ranks %" PRIu64 "-%" PRIu64 "\n", *next_rank, *next_rank + usable - 1);
    *next_rank += usable;
    if (!book)
        return 0;
    show_verdict(book, host, BLACKLIST_WHOLE_HOST);
    for (uint32_t slot = 0; slot < host->slots; slot++)
        show_verdict(book, host, slot);
    return history ? show_history(book, host->name, err) : 0;
}

static int name_column(const struct hosts *hosts)
{
    size_t widest = NAME_COLUMN_MIN;

    for (size_t i = 0; i < hosts->count; i++) {
        size_t width = strlen(hosts->items[i].name) + 2;

        if (width > widest && width <= NAME_COLUMN_MAX)
            widest = width;
    }
    return (int)widest;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

int show_hosts(struct book *book, bool history, const struct hosts *hosts, struct hvd_err *err)
{
    uint64_t slots = hosts_total_slots(hosts);
    int column = name_column(hosts);
    uint64_t next_rank = 0;
    int rc = 0;

    for (size_t i = 0; !rc && i < hosts->count; i++)
        rc = show_host(book, history, &hosts->items[i], column, &next_rank, err);
    printf("%zu host%s, %" PRIu64 " slot%s, %" PRIu64 " can be used\n", hosts->count,
           plural(hosts->count), slots, plural(slots), next_rank);
    return rc;
}

/* The last of the records that belong to one host: they stand together. */
static bool is_last_of_host(const struct book *book, size_t index,
                            const struct blacklist_record *record)
{
    struct blacklist_record next;

    if (index + 1 == blacklist_count(&book->list))
        return true;
    blacklist_record_at(&book->list, index + 1, book->now_us, book->wall_us, &next);
    return strcmp(next.host, record->host) != 0;
}

int show_book(struct book *book, bool history, struct hvd_err *err)
{
    size_t held = 0;
    int rc = 0;

    for (size_t i = 0; !rc && i < blacklist_count(&book->list); i++) {
        struct blacklist_record record;

        blacklist_record_at(&book->list, i, book->now_us, book->wall_us, &record);
        if (record.failures > 0 || record.until_wall_us > book->wall_us) {
            show_key(book, record.host, record.slot);
            held++;
        }
        if (history && is_last_of_host(book, i, &record))
            rc = show_history(book, record.host, err);
    }
    printf("something is held against %zu host%s or slot%s\n", held, plural(held), plural(held));
    return rc;
}
