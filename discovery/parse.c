#include "discovery/parse.h"

#include "base/limits.h"
#include "base/panic.h"
#include "base/vec.h"

#include <inttypes.h>
#include <string.h>

struct grammar {
    const char *unit_name;
    char separator;
    bool is_text; /* has comments and empty units */
};

static const struct grammar text_grammar = { "line", '\n', true };
static const struct grammar list_grammar = { "entry", ',', false };

struct parser {
    const struct grammar *grammar;
    uint32_t default_slots;
    uint32_t unit_number;
    struct hosts hosts;
    struct VEC(uint32_t) first_units; /* of each host, where it stood first */
    struct hvd_err *err;
};

/* One host as it is written. */
struct entry {
    struct span whole;
    struct span name;
    struct span slots; /* at is NULL when there is no number */
    bool bracketed;
};

static int refuse(struct hvd_err *err, struct span culprit, const char *why)
{
    char quoted[TEXT_QUOTE_MAX];

    return err_set(err, HVD_E_INVAL, "%s: %s", text_quote(culprit.at, culprit.length, quoted), why);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct span span_after(struct span span, size_t length)
{
    return (struct span){ span.at + length, span.length - length };
}

/* The cut_ functions divide an entry; each returns NULL, or what is wrong with it. */
static const char *cut_bracketed_name(struct entry *entry, struct span *ret_rest)
{
    const char *end = memchr(entry->whole.at, ']', entry->whole.length);

    if (!end)
        return "no ']' after '['; write [::1] or [::1]:n";
    entry->bracketed = true;
    entry->name = span_after(entry->whole, 1);
    entry->name.length = (size_t)(end - entry->name.at);
    *ret_rest = span_after(entry->whole, entry->name.length + 2);
    return NULL;
}

static const char *cut_plain_name(struct entry *entry, struct span *ret_rest)
{
    size_t length = 0;
    unsigned colons = 0;

    entry->name = (struct span){ entry->whole.at, 0 };
    for (; length < entry->whole.length && !is_blank(entry->whole.at[length]); length++) {
        if (entry->whole.at[length] == ':')
            colons++;
        if (colons == 0)
            entry->name.length++;
    }
    if (colons > 1)
        return "more than one ':'; an IPv6 address needs brackets: [::1] or [::1]:n";
    if (entry->name.length == 0)
        return "no host name; write name:n";
    *ret_rest = span_after(entry->whole, entry->name.length);
    return NULL;
}

/* " slots = n" */
static const char *cut_slots(struct span rest, struct span *ret_slots)
{
    static const char why[] = "only :n or slots=n may follow a host name; write one host a line";
    struct span key;

    if (!is_blank(rest.at[0]))
        return why;
    span_next(&rest, '=', &key);
    if (!rest.at || !span_is(span_trim(key), "slots"))
        return why;
    *ret_slots = span_trim(rest);
    return NULL;
}

static const char *cut_entry(struct span whole, struct entry *ret_entry)
{
    struct entry entry = { .whole = whole };
    struct span rest;
    const char *why;

    if (whole.length && whole.at[0] == '[')
        why = cut_bracketed_name(&entry, &rest);
    else
        why = cut_plain_name(&entry, &rest);
    if (!why && rest.length && rest.at[0] == ':')
        entry.slots = span_after(rest, 1);
    else if (!why && rest.length)
        why = cut_slots(rest, &entry.slots);
    if (!why)
        *ret_entry = entry;
    return why;
}

static int read_name(const struct entry *entry, char name[LIMIT_HOST_NAME_BYTES + 1],
                     struct hvd_err *err)
{
    int rc = host_name_check(entry->name.at, entry->name.length, err);

    if (rc)
        return rc;
    memcpy(name, entry->name.at, entry->name.length);
    name[entry->name.length] = '\0';
    if (entry->bracketed && !host_name_is_ipv6(name))
        return refuse(err, entry->whole, "not an IPv6 address; write a name without brackets");
    return 0;
}

static int read_slots(const struct entry *entry, uint32_t default_slots, uint32_t *ret_slots,
                      struct hvd_err *err)
{
    uint64_t slots;
    int rc;

    if (!entry->slots.at) {
        if (default_slots == 0)
            return refuse(err, entry->whole,
                          "no number of slots; write name:n or use --slots-per-host");
        *ret_slots = default_slots;
        return 0;
    }
    if (entry->slots.length == 0)
        return refuse(err, entry->whole, "the number of slots is missing; write name:n");
    rc = text_parse_u64(entry->slots, 0, LIMIT_SLOTS_PER_HOST, "the number of slots", &slots, err);
    if (!rc)
        *ret_slots = (uint32_t)slots;
    return rc;
}

static int add_host(struct parser *parser, struct span whole, const char *name, uint32_t slots)
{
    const struct host *known = hosts_find(&parser->hosts, name);
    char quoted[TEXT_QUOTE_MAX];
    int rc;

    if (known && known->slots == slots)
        return 0;
    if (known)
        return err_set(parser->err, HVD_E_INVAL,
                       "%s: %s %" PRIu32 " gives this host %" PRIu32 " slots; keep one of the two",
                       text_quote(whole.at, whole.length, quoted), parser->grammar->unit_name,
                       parser->first_units.items[known - parser->hosts.items], known->slots);
    rc = VEC_RESERVE(&parser->first_units, 1, LIMIT_HOSTS);
    if (!rc)
        rc = hosts_add(&parser->hosts, name, slots);
    if (rc == HVD_E_LIMIT)
        return err_set(parser->err, rc, "%s: more hosts than LIMIT_HOSTS (%d)",
                       text_quote(whole.at, whole.length, quoted), LIMIT_HOSTS);
    if (rc)
        return err_set(parser->err, rc, "%s: %s", text_quote(whole.at, whole.length, quoted),
                       err_text(rc));
    parser->first_units.items[parser->first_units.count++] = parser->unit_number;
    return 0;
}

static int parse_host(struct parser *parser, struct span whole)
{
    char name[LIMIT_HOST_NAME_BYTES + 1];
    struct entry entry;
    const char *why = cut_entry(whole, &entry);
    uint32_t slots = 0;
    int rc;

    if (why)
        return refuse(parser->err, whole, why);
    rc = read_name(&entry, name, parser->err);
    if (!rc)
        rc = read_slots(&entry, parser->default_slots, &slots, parser->err);
    return rc ? rc : add_host(parser, whole, name, slots);
}

/* One line or list entry. */
static int parse_unit(struct parser *parser, struct span unit)
{
    char quoted[TEXT_QUOTE_MAX];
    struct span whole = unit;

    if (unit.length > LIMIT_HOST_LINE_BYTES)
        return err_set(parser->err, HVD_E_LIMIT,
                       "%s: longer than LIMIT_HOST_LINE_BYTES (%d); write one host a line",
                       text_quote(unit.at, unit.length, quoted), LIMIT_HOST_LINE_BYTES);
    if (unit.length && memchr(unit.at, '\0', unit.length))
        return refuse(parser->err, unit, "a NUL byte; this is not text");
    if (parser->grammar->is_text)
        span_next(&unit, '#', &whole);
    whole = span_trim(whole);
    if (whole.length == 0 && parser->grammar->is_text)
        return 0;
    return parse_host(parser, whole);
}

static int parse(const struct grammar *grammar, struct span text, const char *source,
                 uint32_t default_slots, struct hosts *ret_hosts, struct hvd_err *err)
{
    struct parser parser = { .grammar = grammar, .default_slots = default_slots, .err = err };
    struct span unit;
    int rc = 0;

    ASSERT(default_slots <= LIMIT_SLOTS_PER_HOST);
    if (text.length > LIMIT_HOST_TEXT_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "%s: longer than LIMIT_HOST_TEXT_BYTES (%d); write each host once", source,
                       LIMIT_HOST_TEXT_BYTES);
    hosts_init(&parser.hosts);
    while (!rc && span_next(&text, grammar->separator, &unit)) {
        parser.unit_number++;
        rc = parse_unit(&parser, unit);
        if (rc)
            err_prefix(err, rc, "%s: %s %" PRIu32, source, grammar->unit_name, parser.unit_number);
    }
    if (!rc)
        hosts_move(&parser.hosts, ret_hosts);
    hosts_release(&parser.hosts);
    VEC_RELEASE(&parser.first_units);
    return rc;
}

int hosts_parse_text(struct span text, const char *source, uint32_t default_slots,
                     struct hosts *ret_hosts, struct hvd_err *err)
{
    return parse(&text_grammar, text, source, default_slots, ret_hosts, err);
}

int hosts_parse_list(struct span text, const char *source, uint32_t default_slots,
                     struct hosts *ret_hosts, struct hvd_err *err)
{
    /* Nothing at all is an empty set; a nothing beside a comma is an entry left out. */
    if (span_trim(text).length == 0)
        text = (struct span){ NULL, 0 };
    return parse(&list_grammar, text, source, default_slots, ret_hosts, err);
}
