/*
 * blame.c: reads warnings and errors of a driver's log, and looks for the names of the victims of a
 * fault in them. Called by the judge after each fault. Invariant: a name counts only as a whole:
 * 127.0.0.1 is not found in 127.0.0.12, nor #1 in #17.
 */
#include "tests/chaos/blame.h"

#include "base/text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define BLAME_TEXT  (BLAME_NAME + 128)
#define SLOT_DIGITS 3 /* the number of a slot is shorter than that of a port */

static const char *const blame_words[BLAME_KINDS] = {
    [BLAME_WORKER] = "{worker}",
    [BLAME_HOST] = "{host}",
    [BLAME_DRIVER] = "{driver}",
    [BLAME_THING] = "{thing}",
};

/* ---- the victims ---- */

/* Adds a victim, or finds it again; NULL: there is no room. *ret_known: the victim was there. */
static struct blame_victim *blame_put(struct blame *blame, enum blame_kind kind, const char *name,
                                      bool *ret_known)
{
    struct blame_victim *victim;

    *ret_known = true;
    for (uint32_t i = 0; i < blame->count; i++) {
        victim = &blame->victims[i];
        if (victim->kind == kind && !victim->earlier && !strcmp(victim->name, name))
            return victim;
    }
    *ret_known = false;
    if (blame->count == BLAME_VICTIMS)
        return NULL;
    victim = &blame->victims[blame->count++];
    *victim = (struct blame_victim){ .kind = kind };
    (void)snprintf(victim->name, sizeof(victim->name), "%s", name);
    return victim;
}

void blame_add(struct blame *blame, enum blame_kind kind, const char *name, pid_t may_live)
{
    bool known;
    struct blame_victim *victim = blame_put(blame, kind, name, &known);

    if (!victim)
        return;
    victim->may_live = !known || victim->may_live ? may_live : 0;
    victim->allowed = false;
}

void blame_allow(struct blame *blame, enum blame_kind kind, const char *name)
{
    bool known;
    struct blame_victim *victim = blame_put(blame, kind, name, &known);

    if (victim && !known)
        victim->allowed = true;
}

void blame_begin(struct blame *blame, bool settled)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; !settled && i < blame->count; i++) {
        if (blame->victims[i].earlier)
            continue;
        blame->victims[kept] = blame->victims[i];
        blame->victims[kept++].earlier = true;
    }
    blame->count = kept;
}

static bool blame_must_be_named(const struct blame_victim *victim)
{
    return !victim->earlier && !victim->allowed &&
           (!victim->may_live || (kill(victim->may_live, 0) && errno == ESRCH));
}

/* The death of a host hides that of its workers: a worker is named if its host is. A worker of a
 * host that leaves is not missed. */
static bool blame_is_hidden(const struct blame *blame, const struct blame_victim *worker)
{
    const char *colon = strrchr(worker->name, ':');
    size_t length = colon ? (size_t)(colon - worker->name) : 0;

    for (uint32_t i = 0; i < blame->count; i++) {
        const struct blame_victim *host = &blame->victims[i];

        if (host->kind == BLAME_HOST && !host->earlier &&
            (host->allowed || blame_must_be_named(host)) && strlen(host->name) == length &&
            !memcmp(host->name, worker->name, length))
            return true;
    }
    return false;
}

/* ---- the log ---- */

static bool blame_is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* The digits of the number that follows a colon here, as in the slot 127.0.0.2:1; 0: none does. */
static size_t blame_number_behind(const char *at, const char *end)
{
    size_t digits = 0;

    while (end - at > 1 && *at == ':' && at + 1 + digits < end && blame_is_digit(at[1 + digits]))
        digits++;
    return digits;
}

/* Finds the text in the line as a whole name; NULL: it is not there. `slots`: also as the host of a
 * slot. The address of a connection, 127.0.0.1:40213, names no host of the list. */
static const char *blame_in_line(struct span line, const char *text, bool slots)
{
    const size_t length = strlen(text);
    const char *end = line.at + line.length;

    for (const char *at = line.at; (at = memmem(at, (size_t)(end - at), text, length)); at++) {
        bool longer_before =
            at > line.at && blame_is_digit(*text) && (blame_is_digit(at[-1]) || at[-1] == '.');
        bool longer_after = at + length < end && blame_is_digit(text[length - 1]) &&
                            (blame_is_digit(at[length]) ||
                             blame_number_behind(at + length, end) > (slots ? SLOT_DIGITS : 0));

        if (!longer_before && !longer_after)
            return at;
    }
    return NULL;
}

/* Takes the next warning or error of the log, without its time, "warning job: TEXT". false: there
 * is no more. Lines of workers, and of programs without a log, have no such level. */
static bool blame_next_line(struct span *log, struct span *ret_message)
{
    static const char *const levels[] = { "warning ", "error " };
    struct span line;

    while (span_next(log, '\n', &line)) {
        const char *level = memchr(line.at, ' ', line.length);
        size_t left = level ? line.length - (size_t)(++level - line.at) : 0;

        for (size_t i = 0; left && blame_is_digit(*line.at) && i < ARRAY_SIZE(levels); i++)
            if (left > strlen(levels[i]) && !memcmp(level, levels[i], strlen(levels[i]))) {
                *ret_message = (struct span){ level, left };
                return true;
            }
    }
    return false;
}

/* true: a warning or error has the text early enough to be seen. */
static bool blame_is_said(const char *log, const char *text)
{
    struct span rest = { log, strlen(log) };
    struct span line;

    while (blame_next_line(&rest, &line)) {
        if (line.length > BLAME_WITHIN)
            line.length = BLAME_WITHIN;
        if (blame_in_line(line, text, false))
            return true;
    }
    return false;
}

/* ---- the judgement ---- */

static int blame_look(const char *log, const char *text, uint32_t *found, struct hvd_err *err)
{
    if (!blame_is_said(log, text))
        return err_set(err, HVD_E_MISMATCH,
                       "no warning or error of driver.log has \"%s\" in its first %d bytes", text,
                       BLAME_WITHIN);
    ++*found;
    return 0;
}

/* Looks for one text of the row, once for each victim that the text stands for. */
static int blame_find_text(const struct blame *blame, struct span text, const char *log,
                           uint32_t *found, struct hvd_err *err)
{
    char filled[BLAME_TEXT];
    int rc = 0;

    for (int kind = 0; kind < BLAME_KINDS; kind++) {
        const char *word =
            memmem(text.at, text.length, blame_words[kind], strlen(blame_words[kind]));
        const char *behind = word ? word + strlen(blame_words[kind]) : NULL;

        if (!word)
            continue;
        for (uint32_t i = 0; !rc && i < blame->count; i++) {
            const struct blame_victim *victim = &blame->victims[i];

            if ((int)victim->kind != kind || !blame_must_be_named(victim) ||
                (kind == BLAME_WORKER && blame_is_hidden(blame, victim)))
                continue;
            (void)snprintf(filled, sizeof(filled), "%.*s%s%.*s", (int)(word - text.at), text.at,
                           victim->name, (int)(text.at + text.length - behind), behind);
            rc = blame_look(log, filled, found, err);
        }
        return rc;
    }
    (void)snprintf(filled, sizeof(filled), "%.*s", (int)text.length, text.at);
    return blame_look(log, filled, found, err);
}

int blame_find(const struct blame *blame, const char *names, const char *log, uint32_t *ret_found,
               struct hvd_err *err)
{
    struct span rest = { names, strlen(names) }, text;
    uint32_t found = 0;
    int rc = 0;

    while (!rc && span_next(&rest, ';', &text))
        rc = blame_find_text(blame, span_trim(text), log, &found, err);
    if (!rc)
        *ret_found = found;
    return rc;
}

/* true: the fault, or the one before, has hit this, or a part of it: the worker of a host. */
static bool blame_was_hit(const struct blame *blame, const char *name)
{
    for (uint32_t i = 0; i < blame->count; i++) {
        struct span victim = { blame->victims[i].name, strlen(blame->victims[i].name) };

        if (blame_in_line(victim, name, true))
            return true;
    }
    return false;
}

/* true: the line names a victim of the fault, or of the one before. Members name the worker
 * 127.0.0.2:1#5 as "#5 on 127.0.0.2". */
static bool blame_is_about_victim(const struct blame *blame, struct span line)
{
    char by_member[BLAME_NAME + sizeof(" on ")];

    for (uint32_t i = 0; i < blame->count; i++) {
        const char *name = blame->victims[i].name, *number = strchr(name, '#');

        if (number)
            (void)snprintf(by_member, sizeof(by_member), "%s on %.*s", number,
                           (int)strcspn(name, ":"), name);
        if (blame_in_line(line, name, true) || (number && blame_in_line(line, by_member, true)))
            return true;
    }
    return false;
}

/* A line that names a victim accuses the victim; another name in it is that of the process that
 * has noticed. */
int blame_acquit(const struct blame *blame, const char *const *innocents, size_t count,
                 const char *log, struct hvd_err *err)
{
    struct span rest = { log, strlen(log) };
    struct span line;

    while (blame_next_line(&rest, &line))
        for (size_t i = 0; i < count; i++)
            if (blame_in_line(line, innocents[i], true) && !blame_was_hit(blame, innocents[i]) &&
                !blame_is_about_victim(blame, line))
                return err_set(err, HVD_E_MISMATCH, "the log accuses %s, which was not hit: %.*s",
                               innocents[i], (int)line.length, line.at);
    return 0;
}
