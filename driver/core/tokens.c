/*
 * tokens.c: makes, counts and revokes the tokens with which hosts may join. core.c brings the
 * operator's request, joins.c asks whether a host may join, replay.c and compact.c bring the tokens
 * to the next driver. Invariants: the journal has a token before any process may prove it, and the
 * use of a token before the host is welcomed; a token never comes back to life.
 */
#include "driver/core/tokens.h"

#include "base/mem.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TOKEN_ID_LENGTH 8

/* Returns the token whose text begins with this id; NULL: there is no such token. */
static struct core_token *token_find(struct core *core, const char *id)
{
    struct core_token *token;

    VEC_EACH (token, &core->listing.joins.tokens)
        if (!strncmp(token->text, id, TOKEN_ID_LENGTH))
            return token;
    return NULL;
}

/* True: the text is the id of a token, and its key if `whole`: hexadecimal digits. */
static bool token_is_text(const char *text, bool whole)
{
    size_t digits = strspn(text, "0123456789abcdef");

    if (digits != TOKEN_ID_LENGTH)
        return false;
    if (!whole)
        return !text[digits];
    return text[digits] == ' ' && strlen(text) == LIMIT_TOKEN_TEXT_BYTES &&
           strspn(text + digits + 1, "0123456789abcdef") == LIMIT_TOKEN_TEXT_BYTES - digits - 1;
}

static void token_release(struct core_token *token)
{
    for (size_t i = 0; i < token->used.count; i++)
        mem_free(token->used.items[i].host);
    VEC_RELEASE(&token->used);
    mem_free(token->host);
}

/* Adds a copy of the token to the table. `host`: the only host that may use it; NULL or "": any.
 * Returns 0, HVD_E_NOMEM, or HVD_E_LIMIT: the table has LIMIT_TOKENS tokens. */
static int token_add(struct core *core, const struct core_token *made, const char *host)
{
    struct core_token token = *made;
    int rc = VEC_RESERVE(&core->listing.joins.tokens, 1, LIMIT_TOKENS);

    if (!rc && host && *host && !(token.host = mem_strdup(host)))
        rc = HVD_E_NOMEM;
    if (!rc)
        core->listing.joins.tokens.items[core->listing.joins.tokens.count++] = token;
    return rc;
}

/* If the table of tokens is full, forgets one that lets no further host in: the oldest one that is
 * revoked, or has expired and was never used, or else the oldest one that has expired. The
 * handshake still accepts the key of a forgotten token until the driver ends, but tokens_use
 * refuses each JOIN with it, because its id is not known. */
static void tokens_forget_dead(struct core *core)
{
    struct core_joins *joins = &core->listing.joins;
    size_t at = joins->tokens.count, count = joins->tokens.count;

    for (size_t i = 0; count >= LIMIT_TOKENS && i < count; i++) {
        const struct core_token *token = &joins->tokens.items[i];

        if (token->revoked || (token->until_wall_us <= core->wall_us && !token->used.count)) {
            at = i;
            break;
        }
        if (token->until_wall_us <= core->wall_us && at == count)
            at = i;
    }
    if (at == count)
        return;
    token_release(&joins->tokens.items[at]);
    memmove(&joins->tokens.items[at], &joins->tokens.items[at + 1],
            (count - at - 1) * sizeof(joins->tokens.items[0]));
    joins->tokens.count--;
}

/* Handles EVENT_TOKEN with TOKEN_MADE: adds a token and answers. A token that the job has already,
 * perhaps revoked, stays as it is, because the same file of tokens may be given to each driver of
 * the job. */
static void token_make(struct core *core, const struct event *event)
{
    /* In EVENT_TOKEN the field `slot` is the number of hosts that may use the token (event.h). */
    struct core_token token = { .uses = event->slot, .until_wall_us = TIME_NEVER };
    const char *host = event->host ? event->host : "";
    struct journal_record *record;
    int rc;

    if (core->config.join == JOIN_NO) {
        tell_reply(core, event->ask, HVD_E_STATE,
                   "no host can join this job; start it with --discovery join");
        return;
    }
    if (!token_is_text(event->text, true /* id and key */) || event->slot > LIMIT_HOSTS ||
        (*host && host_name_check(host, strlen(host), NULL))) {
        tell_reply(core, event->ask, HVD_E_INVAL,
                   "the token, its number of hosts or the name of its host is not possible");
        return;
    }
    if (token_find(core, event->text)) {
        tell_reply(core, event->ask, 0, "");
        return;
    }
    memcpy(token.text, event->text, LIMIT_TOKEN_TEXT_BYTES + 1);
    if (event->left_us != TIME_NEVER)
        token.until_wall_us = time_add(core->wall_us, event->left_us);
    tokens_forget_dead(core);
    rc = token_add(core, &token, host);
    if (rc) {
        tell_reply(core, event->ask, rc,
                   rc == HVD_E_LIMIT ? tell_text(core,
                                                 "the job has %d tokens, the most that a job can "
                                                 "have (LIMIT_TOKENS); revoke one",
                                                 LIMIT_TOKENS)
                                     : err_text(rc));
        return;
    }
    record = tell_record(core, JOURNAL_TOKEN);
    record->code = TOKEN_MADE;
    record->text = tell_text(core, "%s", token.text);
    record->host = tell_text(core, "%s", host);
    record->value = (int32_t)token.uses;
    record->wall_us = token.until_wall_us;
    tell_token(core, token.text);
    CORE_TRACE(core, FACTS(.kind = KIND_TOKEN_MADE), "token %.8s: hosts may join with this token",
               token.text);
    tell_reply(core, event->ask, 0, "");
}

/* Handles EVENT_TOKEN: makes a token, or revokes the one that the event names, and answers the
 * operator. Hosts that have joined with a revoked token stay in the job. */
void tokens_on_event(struct core *core, const struct event *event)
{
    struct core_token *token;
    struct journal_record *record;

    if (event->code == TOKEN_MADE) {
        token_make(core, event);
        return;
    }
    token =
        token_is_text(event->text, false /* the id alone */) ? token_find(core, event->text) : NULL;
    if (!token) {
        tell_reply(core, event->ask, HVD_E_NOTFOUND,
                   tell_text(core, "%s: no such token in this job; see 'hvd-elastic token list'",
                             event->text));
        return;
    }
    if (!token->revoked) {
        record = tell_record(core, JOURNAL_TOKEN);
        record->code = TOKEN_REVOKED;
        record->text = tell_text(core, "%.8s", token->text);
        CORE_TRACE(core, FACTS(.kind = KIND_TOKEN_REVOKED),
                   "token %.8s: is revoked; hosts that have joined with it stay while they are "
                   "connected, and need another token after a break",
                   token->text);
    }
    token->revoked = true;
    tell_reply(core, event->ask, 0, "");
}

/* Returns the entry of this host, which has joined with the token before, so that it takes no
 * further use of the token. NULL: there is none. */
static struct core_token_use *token_use_of(const struct core_token *token, const char *host)
{
    for (size_t i = 0; i < token->used.count; i++)
        if (!strcmp(token->used.items[i].host, host))
            return &token->used.items[i];
    return NULL;
}

/* True: the use of the token by this process of the host has to be noted. That of a token without
 * any limit is not, and of one that does not expire only the host counts. A token for any number of
 * hosts notes LIMIT_HOSTS of them, and a further host needs a token that is good when it comes
 * back. */
static bool token_must_note(const struct core_token *token, const struct core_token_use *use,
                            uint64_t number)
{
    if (use)
        return token->until_wall_us != TIME_NEVER && use->number != number;
    return token->uses || (token->until_wall_us != TIME_NEVER && token->used.count < LIMIT_HOSTS);
}

/* Notes that this process of the host has joined with the token. */
static int token_note_use(struct core_token *token, const char *host, uint64_t number)
{
    struct core_token_use *use = token_use_of(token, host);
    struct core_token_use made = { .number = number };

    if (!token_must_note(token, use, number))
        return 0;
    if (use) {
        use->number = number;
        return 0;
    }
    if (VEC_RESERVE(&token->used, 1, LIMIT_HOSTS) || !(made.host = mem_strdup(host)))
        return HVD_E_NOMEM;
    token->used.items[token->used.count++] = made;
    return 0;
}

/* A host wants to join with the token of this id. NULL: it may, and the journal gets a record of
 * the use if the next driver has to know it. Otherwise returns the reason for the refusal. A
 * process that joined before the token expired comes back with it: after a break of its connection,
 * and to the next driver. */
const char *tokens_use(struct core *core, const char *id, const char *host, uint64_t number)
{
    struct core_token *token = token_find(core, id);
    const struct core_token_use *use = token ? token_use_of(token, host) : NULL;
    struct journal_record *record;

    if (!token || token->revoked)
        return tell_text(core,
                         "token %.8s is revoked; get another one with 'hvd-elastic token "
                         "create'",
                         id);
    if (token->until_wall_us <= core->wall_us && !(use && use->number == number))
        return tell_text(core,
                         "token %.8s has expired; get another one with 'hvd-elastic token "
                         "create'",
                         id);
    if (token->host && strcmp(token->host, host) != 0)
        return tell_text(core,
                         "token %.8s is for host %s alone; join with --name %s, or with "
                         "another token",
                         id, token->host, token->host);
    if (token->uses && !use && token->used.count >= token->uses)
        return tell_text(core,
                         "token %.8s is used up, as it is good for %" PRIu32
                         " hosts; get another one with 'hvd-elastic token create'",
                         id, token->uses);
    if (!token_must_note(token, use, number))
        return NULL;
    if (token_note_use(token, host, number)) {
        core_fail(core); /* no memory: the host gets no answer */
        return NULL;
    }
    record = tell_record(core, JOURNAL_TOKEN);
    record->code = TOKEN_USED;
    record->text = tell_text(core, "%.8s", id);
    record->host = tell_text(core, "%s", host);
    record->check = number;
    return NULL;
}

/* Gives the log line that tells of too few slots its end: without a token no host can join. Said
 * once. */
const char *tokens_advise(struct core *core)
{
    struct core_joins *joins = &core->listing.joins;

    if (!core->config.join || core->config.join_token || joins->tokens.count || joins->advised)
        return "";
    joins->advised = true;
    return "; no host can join, as the job has no token: 'hvd-elastic token create' makes one, for "
           "'hvd-agent --join'";
}

/* Called when the driver starts: the tokens that the journal names are accepted in handshakes. */
void tokens_start(struct core *core)
{
    for (size_t i = 0; i < core->listing.joins.tokens.count; i++)
        tell_token(core, core->listing.joins.tokens.items[i].text);
}

/* Restores a TOKEN record: a token was made, used by a host, or revoked. A record that was read
 * before changes nothing. */
int tokens_replay(struct core *core, const struct journal_record *record, struct hvd_err *err)
{
    struct core_token made = { .uses = (uint32_t)record->value, .until_wall_us = record->wall_us };
    struct core_token *token;

    if (record->code < 0 || record->code >= TOKEN_CODE_COUNT || record->value < 0 ||
        !token_is_text(record->text, record->code == TOKEN_MADE))
        return err_set(err, HVD_E_CORRUPT,
                       "a TOKEN record of the journal is damaged: no token can be like this; start "
                       "the job anew");
    token = token_find(core, record->text);
    if (record->code == TOKEN_MADE && token)
        return 0; /* the record was read before */
    if (record->code == TOKEN_MADE) {
        memcpy(made.text, record->text, LIMIT_TOKEN_TEXT_BYTES + 1);
        tokens_forget_dead(core);
        /* HVD_E_LIMIT: the table is full of tokens that are in use, so this one is left out. */
        return token_add(core, &made, record->host) == HVD_E_NOMEM ? HVD_E_NOMEM : 0;
    }
    if (!token)
        return 0; /* a record about a token that tokens_forget_dead has dropped has no effect */
    if (record->code == TOKEN_REVOKED)
        token->revoked = true;
    else if (*record->host)
        return token_note_use(token, record->host, record->check);
    return 0;
}

void tokens_release(struct core *core)
{
    for (size_t i = 0; i < core->listing.joins.tokens.count; i++)
        token_release(&core->listing.joins.tokens.items[i]);
    VEC_RELEASE(&core->listing.joins.tokens);
}
