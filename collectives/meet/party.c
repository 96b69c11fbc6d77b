#include "base/limits.h"
#include "base/mem.h"
#include "collectives/meet/inside.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define OTHER_ROUND                                                                  \
    "that round has other members, groups or settings here; let groups be the same " \
    "on all ranks, and all workers have the same HVD_ variables"

/* ---- from other threads ---- */

static void wake(struct meet *meet)
{
    (void)eventfd_write(meet->wake, 1);
}

/* Half of its peers are dialled by each, and of two one dials the other. */
static bool is_dialler(uint32_t rank, uint32_t peer)
{
    return (rank + peer) % 2 ? rank < peer : rank > peer;
}

void party_free(struct meet_party *party)
{
    if (!party)
        return;
    mem_free(party->peers);
    mem_free(party);
}

int meet_join(struct meet *meet, const struct meet_spec *spec, struct meet_party **ret_party,
              struct hvd_err *err)
{
    struct meet_party *party = mem_zalloc(sizeof(*party));
    int rc = 0;

    if (party)
        party->peers = mem_zalloc_array(spec->peer_count, sizeof(*party->peers));
    if (!party || !party->peers) {
        party_free(party);
        return err_set(err, HVD_E_NOMEM, "out of memory");
    }
    list_init(&party->place);
    party->meet = meet;
    party->spec = *spec;
    for (size_t i = 0; i < spec->peer_count && !rc; i++) {
        const struct meet_peer *from = &spec->peers[i];
        struct party_peer *peer = &party->peers[i];

        peer->rank = from->rank;
        peer->incarnation = from->incarnation;
        memcpy(peer->address, from->address, from->address_length);
        peer->address_length = from->address_length;
        peer->dialled = is_dialler(spec->rank, from->rank);
        rc = from->contact ? meet_contact_read(from->contact, &peer->contact, err)
                           : err_set(err, HVD_E_LOST, "it has no address for data");
        if (rc)
            err_prefix(err, rc, "rank %u", from->rank);
    }
    if (rc) {
        party_free(party);
        return rc;
    }
    party->spec.peers = NULL;
    pthread_mutex_lock(&meet->mutex);
    list_append(&meet->arrivals, &party->place);
    *ret_party = party;
    pthread_mutex_unlock(&meet->mutex);
    wake(meet);
    return 0;
}

void meet_tell(struct meet_party *party, int code, uint32_t rank, const char *why)
{
    struct meet *meet = party->meet;

    pthread_mutex_lock(&meet->mutex);
    if (!party->told) {
        party->told = true;
        party->notice = (struct meet_frame){ .kind = MEET_NOTICE, .code = code, .rank = rank };
        memcpy(party->notice.text, why, strnlen(why, sizeof(party->notice.text) - 1));
    }
    pthread_mutex_unlock(&meet->mutex);
    wake(meet);
}

void meet_bye(struct meet_party *party)
{
    struct meet *meet = party->meet;

    pthread_mutex_lock(&meet->mutex);
    party->bye = true;
    wake(meet);
    while (!party->bye_said && !meet->closing)
        pthread_cond_wait(&meet->changed, &meet->mutex);
    pthread_mutex_unlock(&meet->mutex);
}

void meet_leave(struct meet_party *party, bool politely)
{
    struct meet *meet = party->meet;

    pthread_mutex_lock(&meet->mutex);
    party->leaving = true;
    party->politely = politely;
    pthread_mutex_unlock(&meet->mutex);
    wake(meet);
}

/* ---- beginning ---- */

/* Judging one may free others: each is looked for anew. */
static struct meet_line *next_parked(struct meet *meet)
{
    LIST_EACH (it, &meet->lines) {
        struct meet_line *line = CONTAINER_OF(it, struct meet_line, place);

        if (line->stage == LINE_PARKED && line->hello.round <= meet->newest)
            return line;
    }
    return NULL;
}

static void admit_parked(struct meet *meet)
{
    struct meet_line *line;

    while ((line = next_parked(meet)))
        party_judge(line);
}

void party_begin(struct meet_party *party, int64_t now_us)
{
    struct meet *meet = party->meet;

    if (party->spec.round > meet->newest)
        meet->newest = party->spec.round;
    for (size_t i = 0; i < party->spec.peer_count; i++) {
        struct party_peer *peer = &party->peers[i];

        if (!peer->dialled)
            continue;
        peer->line = line_create(meet, LINE_WAITS, -1);
        if (!peer->line) {
            party->spec.ops->missed(party->spec.arg, i, HVD_E_NOMEM, "out of memory");
            continue;
        }
        peer->line->party = party;
        peer->line->peer = peer;
        line_dial(peer->line, now_us);
    }
    admit_parked(meet);
}

/* ---- meeting ---- */

void party_met(struct meet_party *party, struct party_peer *peer, struct meet_line *line,
               const struct meet_frame *frame)
{
    if (peer->line && peer->line != line) { /* it dials again as its first line broke */
        struct meet_line *older = peer->line;

        peer->line = line;
        line_free(older);
    }
    if (line->stage == LINE_PARKED)
        line->meet->parked_count--;
    line->stage = LINE_MET;
    line->party = party;
    line->peer = peer;
    peer->line = line;
    if (party->told_all)
        line_say(line, &party->notice);
    if (peer->met)
        return;
    peer->met = true;
    party->spec.ops->met(party->spec.arg, (size_t)(peer - party->peers), frame->address,
                         frame->address_length);
}

static void refuse(struct meet_line *line, int code, const char *why)
{
    struct meet_frame refused = { .kind = MEET_REFUSED, .code = code, .rank = MEET_NOBODY };

    memcpy(refused.text, why, strlen(why));
    line_say(line, &refused);
    line_free(line);
}

static struct meet_party *find_party(struct meet *meet, uint64_t round)
{
    LIST_EACH (it, &meet->parties) {
        struct meet_party *party = CONTAINER_OF(it, struct meet_party, place);

        if (party->spec.round == round && !party->left)
            return party;
    }
    return NULL;
}

static struct party_peer *find_peer(struct meet_party *party, uint64_t incarnation)
{
    for (size_t i = 0; i < party->spec.peer_count; i++) {
        if (party->peers[i].incarnation == incarnation && !party->peers[i].dialled)
            return &party->peers[i];
    }
    return NULL;
}

/* A dialler whose secret is right: is it to be met, later, or never? */
void party_judge(struct meet_line *line)
{
    const struct meet_frame *hello = &line->hello;
    struct meet *meet = line->meet;
    struct meet_party *party = find_party(meet, hello->round);
    struct meet_frame welcome = { .kind = MEET_WELCOME };
    struct party_peer *peer;

    if (!party && hello->round > meet->newest) {
        if (meet->parked_count > LIMIT_MEET_PARKED)
            line_free(line);
        return;
    }
    if (!party) {
        refuse(line, HVD_E_NOTFOUND, "that round is over here");
        return;
    }
    peer = find_peer(party, hello->from);
    if (!peer || hello->to != party->spec.incarnation || hello->roster != party->spec.roster) {
        refuse(line, HVD_E_MISMATCH, OTHER_ROUND);
        return;
    }
    memcpy(welcome.address, peer->address, peer->address_length);
    welcome.address_length = peer->address_length;
    line_say(line, &welcome);
    party_met(party, peer, line, hello);
}

void party_starves(struct meet_party *party)
{
    for (size_t i = 0; i < party->spec.peer_count && !party->left; i++) {
        if (!party->peers[i].dialled && !party->peers[i].met)
            party->spec.ops->missed(party->spec.arg, i, HVD_E_LIMIT, MEET_STARVES);
    }
}

void party_missed(struct meet_line *line, int code, const char *why)
{
    struct meet_party *party = line->party;
    size_t at = (size_t)(line->peer - party->peers);

    if (!party->left)
        party->spec.ops->missed(party->spec.arg, at, code, why);
    line_free(line);
}

void party_heard(struct meet_line *line, const struct meet_frame *frame)
{
    struct meet_party *party = line->party;
    size_t at = (size_t)(line->peer - party->peers);

    if (frame->kind == MEET_BYE)
        line->bye_heard = true;
    else if (!party->left && !line->bye_heard)
        party->spec.ops->heard(party->spec.arg, at, frame->code, frame->rank, frame->text);
}

void party_parted(struct meet_line *line)
{
    struct meet_party *party = line->party;
    size_t at = (size_t)(line->peer - party->peers);
    bool expected = line->bye_heard || party->left;

    line_free(line);
    if (!expected)
        party->spec.ops->parted(party->spec.arg, at);
}

/* ---- leaving ---- */

static void tell_all(struct meet_party *party)
{
    for (size_t i = 0; i < party->spec.peer_count; i++) {
        struct meet_line *line = party->peers[i].line;

        if (line && line->stage == LINE_MET)
            line_say(line, &party->notice);
    }
}

static void leave(struct meet_party *party, bool politely)
{
    const struct meet_frame bye = { .kind = MEET_BYE };

    for (size_t i = 0; i < party->spec.peer_count; i++) {
        struct meet_line *line = party->peers[i].line;

        if (line && (!politely || line->stage != LINE_MET))
            line_free(line);
        else if (line)
            line_say(line, &bye);
    }
}

static void say_bye(struct meet_party *party)
{
    const struct meet_frame bye = { .kind = MEET_BYE };

    for (size_t i = 0; i < party->spec.peer_count; i++) {
        struct meet_line *line = party->peers[i].line;

        if (line && line->stage == LINE_MET)
            line_say(line, &bye);
    }
    pthread_mutex_lock(&party->meet->mutex);
    party->bye_said = true;
    pthread_cond_broadcast(&party->meet->changed);
    pthread_mutex_unlock(&party->meet->mutex);
}

/* What the owner has ordered since the last time. */
void party_obey(struct meet_party *party, int64_t now_us)
{
    bool told, bye, leaving, politely;

    pthread_mutex_lock(&party->meet->mutex);
    told = party->told;
    bye = party->bye && !party->bye_said;
    leaving = party->leaving;
    politely = party->politely;
    pthread_mutex_unlock(&party->meet->mutex);
    if (told && !party->told_all) {
        party->told_all = true;
        tell_all(party);
    }
    if (bye)
        say_bye(party);
    if (leaving && !party->left) {
        party->left = true;
        party->deadline_us = now_us + LIMIT_MEET_BYE_US;
        leave(party, politely);
    }
}

bool party_is_done(const struct meet_party *party, int64_t now_us)
{
    if (!party->left)
        return false;
    for (size_t i = 0; i < party->spec.peer_count && now_us < party->deadline_us; i++) {
        const struct meet_line *line = party->peers[i].line;

        if (line && (!line->bye_heard || line->out.length))
            return false;
    }
    return true;
}

void party_end(struct meet_party *party)
{
    const struct meet_spec spec = party->spec;

    for (size_t i = 0; i < spec.peer_count; i++) {
        if (party->peers[i].line)
            line_free(party->peers[i].line);
    }
    list_remove(&party->place);
    party_free(party);
    spec.ops->gone(spec.arg);
}
