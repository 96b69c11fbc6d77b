/*
 * parse.c: reads a text or a list of hosts: the output of a discovery script, a host file, --hosts.
 * discovery/sources and hvd-hosts call it. A text is taken whole or not at all: the first error
 * ends the reading, names its line, and leaves the caller's hosts as they were.
 */
#include "discovery/parse.h"

#include "base/limits.h"
#include "base/panic.h"
#include "base/vec.h"

#include <inttypes.h>
#include <string.h>

/* How hosts are written. A unit is the text of one host: a line of a text, or an entry of a list.
 */
struct grammar {
    const char *unit_name;
    char separator;
    bool is_text; /* true: a text, in which comments and empty lines are allowed; false: a list */
    bool repeats_add; /* true: a host that is named again without a number gets default_slots more;
                         false: it is an error, or stays unchanged if the number of slots is the
                         same */
};

/* The grammars of the output of a script, of a host file, and of the list of --hosts. */
static const struct grammar text_grammar = { "line", '\n', true, false };
static const struct grammar file_grammar = { "line", '\n', true, true };
static const struct grammar list_grammar = { "entry", ',', false, true };

struct parser {
    uint32_t slots; /* the sum of the slots of all hosts that were read so far */
    const struct grammar *grammar;
    uint32_t default_slots; /* the slots of a host without a number; 0: each host needs a number */
    uint32_t unit_number;   /* the present line or entry; the first is 1 */
    struct hosts hosts;
    struct VEC(uint32_t) first_units; /* for each host the line or entry where it was first named */
    struct hvd_err *err;
};

/* The parts of one unit, "name:slots" or "name slots=n max_slots=m". All point into the text. */
struct entry {
    struct span whole;
    struct span name;
    struct span slots;     /* slots.at is NULL when the entry has no number */
    struct span max_slots; /* max_slots.at is NULL when the entry has no such setting */
    bool bracketed;        /* the name stands in brackets, so it must be an IPv6 address */
};

/* Sets an error that quotes the wrong part of the text (`culprit`) and says what is wrong with it.
 * Returns HVD_E_INVAL. */
static int parse_refuse(struct hvd_err *err, struct span culprit, const char *why)
{
    char quoted[TEXT_QUOTE_MAX];

    return err_set(err, HVD_E_INVAL, "%s: %s", text_quote(culprit.at, culprit.length, quoted), why);
}

static bool parse_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Returns `span` without its first `length` bytes. */
static struct span span_after(struct span span, size_t length)
{
    return (struct span){ span.at + length, span.length - length };
}

/* Splits what follows the name of a host: " slots = n max_slots = m", in any order. Returns NULL,
 * or the reason why it cannot be split. `apart`: a blank separates the settings from the name, as
 * it must. */
static const char *parse_cut_settings(struct span rest, struct entry *entry)
{
    static const char why[] = "only :n or slots=n may follow a host name; write one host a line";
    bool apart = parse_is_blank(rest.at[0]);

    for (rest = span_trim(rest); rest.length; rest = span_trim(rest)) {
        struct span *value = NULL;
        size_t length = 0;
        struct span key;

        span_next(&rest, '=', &key);
        key = span_trim(key);
        if (span_is(key, "slots"))
            value = &entry->slots;
        else if (span_is(key, "max_slots") || span_is(key, "max-slots"))
            value = &entry->max_slots;
        /* rest.at is NULL: there was no '='. value->at is set: the same setting stands there twice.
         */
        if (!apart || !rest.at || !value || value->at)
            return why;
        rest = span_trim(rest);
        while (length < rest.length && !parse_is_blank(rest.at[length]))
            length++;
        *value = (struct span){ rest.at, length };
        rest = span_after(rest, length);
    }
    return NULL;
}

/* Splits the text of one host into its name and its number of slots: "name", "name:n", "name
 * slots=n", "[name]:n". Returns NULL, or the reason why the text cannot be split. */
static const char *parse_cut(struct span whole, struct entry *ret_entry)
{
    struct entry entry = { .whole = whole, .bracketed = whole.length && whole.at[0] == '[' };
    const char *end = whole.at + whole.length;
    const char *at = whole.at;
    unsigned colons = 0;
    struct span rest;

    /* The name ends at its closing bracket, or at the first colon or blank. */
    if (entry.bracketed) {
        at = memchr(whole.at, ']', whole.length);
        if (!at)
            return "no ']' after '['; write [::1] or [::1]:n";
        entry.name = (struct span){ whole.at + 1, (size_t)(at - whole.at) - 1 };
        rest = span_after(whole, (size_t)(at - whole.at) + 1);
    } else {
        for (; at < end && !parse_is_blank(*at); at++)
            colons += *at == ':';
        if (colons > 1)
            return "more than one ':'; an IPv6 address needs brackets: [::1] or [::1]:n";
        if (colons)
            at = memchr(whole.at, ':', whole.length);
        if (at == whole.at)
            return "no host name; write name:slots";
        entry.name = (struct span){ whole.at, (size_t)(at - whole.at) };
        rest = span_after(whole, entry.name.length);
    }
    *ret_entry = entry;
    /* The number follows ":" or " slots = ", or is missing. */
    if (rest.length && rest.at[0] == ':')
        ret_entry->slots = span_after(rest, 1);
    else if (rest.length)
        return parse_cut_settings(rest, ret_entry);
    return NULL;
}

/* Adds a host to the hosts that were read. In a host file or a list (`repeats_add`) a host that is
 * named again gets more slots, if the entry has no number. In the text of a script a host that is
 * named again stays unchanged, if the number of slots is the same. Each other repetition is an
 * error. */
static int parse_add(struct parser *parser, const struct entry *entry, const char *name,
                     uint32_t slots)
{
    const struct host *known = hosts_find(&parser->hosts, name);
    const struct span whole = entry->whole;
    bool repeats_add = parser->grammar->repeats_add;
    char quoted[TEXT_QUOTE_MAX];
    int rc;

    /* A script may name a host again with the same number of slots; its first position counts. */
    if (known && known->slots == slots && !repeats_add)
        return 0;
    if (slots > LIMIT_SLOTS - parser->slots)
        return err_set(parser->err, HVD_E_LIMIT,
                       "%s: with this %s all hosts together have more than %d slots (LIMIT_SLOTS); "
                       "list fewer",
                       text_quote(whole.at, whole.length, quoted), parser->grammar->unit_name,
                       LIMIT_SLOTS);
    parser->slots += slots; /* not undone after an error, which ends the parsing */
    if (known && repeats_add && !entry->slots.at) {
        rc = hosts_add_slots(&parser->hosts, name, slots);
        return rc ? err_set(parser->err, rc,
                            "%s: with this line the host has more than %d slots "
                            "(LIMIT_SLOTS_PER_HOST); remove the line",
                            text_quote(whole.at, whole.length, quoted), LIMIT_SLOTS_PER_HOST)
                  : 0;
    }
    rc = known ? HVD_E_INVAL : VEC_RESERVE(&parser->first_units, 1, LIMIT_HOSTS);
    if (!rc)
        rc = hosts_add(&parser->hosts, name, slots);
    if (!rc) {
        parser->first_units.items[parser->first_units.count++] = parser->unit_number;
        return 0;
    }
    text_quote(whole.at, whole.length, quoted);
    if (known)
        return err_set(parser->err, rc,
                       "%s: %s %" PRIu32 " gives this host %" PRIu32 " slots; keep one of the two",
                       quoted, parser->grammar->unit_name,
                       parser->first_units.items[known - parser->hosts.items], known->slots);
    if (rc == HVD_E_LIMIT)
        return err_set(parser->err, rc, "%s: more than %d hosts (LIMIT_HOSTS); list fewer", quoted,
                       LIMIT_HOSTS);
    return err_set(parser->err, rc, "%s: %s", quoted, err_text(rc));
}

/* Reads one line of a text, or one entry of a list, and adds its host. `most`: the value of
 * max_slots; UINT32_MAX: the entry has none. */
static int parse_unit(struct parser *parser, struct span unit)
{
    char name[LIMIT_HOST_NAME_BYTES + 1];
    char quoted[TEXT_QUOTE_MAX];
    struct span whole = unit;
    struct entry entry;
    const char *why;
    uint64_t slots = parser->default_slots, most = UINT32_MAX;
    struct hvd_err *err = parser->err;
    int rc;

    if (unit.length > LIMIT_HOST_LINE_BYTES)
        return err_set(
            err, HVD_E_LIMIT,
            "%s: the line is longer than LIMIT_HOST_LINE_BYTES (%d); write one host a line",
            text_quote(unit.at, unit.length, quoted), LIMIT_HOST_LINE_BYTES);
    if (unit.length && memchr(unit.at, '\0', unit.length))
        return parse_refuse(err, unit, "a NUL byte; write text only");
    /* Only a text may have comments and blank lines. */
    if (parser->grammar->is_text)
        span_next(&unit, '#', &whole);
    whole = span_trim(whole);
    if (whole.length == 0 && parser->grammar->is_text)
        return 0;
    why = parse_cut(whole, &entry);
    if (why)
        return parse_refuse(err, whole, why);
    rc = host_name_check(entry.name.at, entry.name.length, err);
    if (rc)
        return rc;
    memcpy(name, entry.name.at, entry.name.length);
    name[entry.name.length] = '\0';
    if (entry.bracketed && !host_name_is_ipv6(name))
        return parse_refuse(err, whole, "not an IPv6 address; write a name without brackets");
    if (!entry.slots.at && slots == 0)
        return parse_refuse(err, whole,
                            "no number of slots; write name:slots or use --slots-per-host");
    if (entry.slots.at && entry.slots.length == 0)
        return parse_refuse(err, whole, "the number of slots is missing; write name:slots");
    if (entry.slots.at)
        rc = text_parse_u64(entry.slots, 0, LIMIT_SLOTS_PER_HOST, "the number of slots", &slots,
                            err);
    /* A host never runs more workers than it has slots, so max_slots above the number of slots
     * changes nothing. */
    if (!rc && entry.max_slots.at)
        rc = text_parse_u64(entry.max_slots, 0, UINT32_MAX, "max_slots", &most, err);
    if (!rc && slots > most)
        rc = parse_refuse(err, whole, "max_slots is less than the slots; lower the slots");
    return rc ? rc : parse_add(parser, &entry, name, (uint32_t)slots);
}

/* Reads all lines or entries of a text. default_slots: the slots of a host that is written without
 * a number; 0: each host must have a number. `source` is the name of the text, for errors. After a
 * failure *ret_hosts is unchanged. */
static int parse_units(const struct grammar *grammar, struct span text, const char *source,
                       uint32_t default_slots, struct hosts *ret_hosts, struct hvd_err *err)
{
    struct parser parser = { .grammar = grammar, .default_slots = default_slots, .err = err };
    struct span unit;
    int rc = 0;

    ASSERT(default_slots <= LIMIT_SLOTS_PER_HOST);
    if (text.length > LIMIT_HOST_TEXT_BYTES)
        return err_set(
            err, HVD_E_LIMIT,
            "%s: the list of hosts is longer than LIMIT_HOST_TEXT_BYTES (%d); write each host once",
            source, LIMIT_HOST_TEXT_BYTES);
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

/* Reads the output of a discovery script: one host a line; a host that is named twice must have the
 * same slots. */
int hosts_parse_text(struct span text, const char *source, uint32_t default_slots,
                     struct hosts *ret_hosts, struct hvd_err *err)
{
    return parse_units(&text_grammar, text, source, default_slots, ret_hosts, err);
}

/* Reads a host file: one host a line; a host that is named again without a number gets more slots.
 */
int hosts_parse_hostfile(struct span text, const char *source, uint32_t default_slots,
                         struct hosts *ret_hosts, struct hvd_err *err)
{
    return parse_units(&file_grammar, text, source, default_slots, ret_hosts, err);
}

/* Reads the list of --hosts, "a:2,b:1". */
int hosts_parse_list(struct span text, const char *source, uint32_t default_slots,
                     struct hosts *ret_hosts, struct hvd_err *err)
{
    /* A list of nothing but blanks is an empty set of hosts. In a list with hosts, an empty entry
     * next to a comma is an error. */
    if (span_trim(text).length == 0)
        text = (struct span){ NULL, 0 };
    return parse_units(&list_grammar, text, source, default_slots, ret_hosts, err);
}
