/*
 * mitm.c: harms the bytes of TCP connections, packet by packet. Called by the thread of
 * net_faults.c, and by faults_mitm.c for the counts.
 *
 * Invariant: of a harmed connection every later packet is shifted, so that each kernel gets the
 * sequence numbers that it expects. The receiver has no other sign of the harm than its bytes.
 */
#include "tests/chaos/mitm.h"

#include "base/mem.h"
#include "base/rng.h"
#include "tests/chaos/networks.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define VICTIMS 256
/* A member reads from a peer only what it has asked for. After so many bytes it has read on. */
#define BEHIND_BYTES (256 * 1024)
#define SEGMENT_MAX  1460 /* bytes of data in a packet */
#define FOREIGN      24   /* bytes that are injected */
#define SPARED       6    /* at most so many segments with data go before the one that is harmed */
#define IP_BYTES     20
#define TCP_BYTES    20
#define FLAG_FIN     1
#define FLAG_SYN     2
#define FLAG_RST     4
#define FLAG_ACK     16

const char *const mitm_harm_names[MITM_HARMS] = { "changed", "dropped", "repeated", "swapped",
                                                  "injected" };

struct end {
    uint32_t ip;
    uint16_t port;
};

struct victim {
    struct end from, to; /* the bytes that go this way are harmed */
    enum mitm_harm harm;
    uint32_t spared; /* so many segments more go before the harm */
    bool fresh;      /* its first packet was seen, so it may still be in its handshake */
    bool harmed, ended;
    bool begun;      /* a segment that goes this way was seen */
    uint32_t next;   /* the number behind the last of them */
    bool reached;    /* bytes behind the harm have reached the kernel of the receiver */
    uint64_t behind; /* so many bytes have gone after the harm */
    /* numbers of the sender: the bytes that are harmed, and what is added behind them */
    uint32_t cut, cut_end;
    int32_t shift;
    uint8_t bytes[SEGMENT_MAX]; /* CHANGE, SWAP: the bytes that replace those of the sender */
};

struct mitm {
    pthread_mutex_t mutex;
    enum mitm_way way;
    uint32_t most, harmed;
    struct rng rng;
    struct victim victims[VICTIMS];
    uint32_t victim_count;
};

/* A packet, taken apart. */
struct segment {
    uint8_t *packet;
    size_t ip_bytes, tcp_bytes, data;
    struct end from, to;
    uint32_t seq, ack;
    uint8_t flags;
};

int mitm_create(enum mitm_way way, uint32_t most, uint64_t seed, struct mitm **ret_mitm)
{
    struct mitm *mitm = mem_zalloc(sizeof(*mitm));

    if (!mitm)
        return HVD_E_NOMEM;
    pthread_mutex_init(&mitm->mutex, NULL);
    mitm->way = way;
    mitm->most = most;
    rng_seed(&mitm->rng, seed);
    *ret_mitm = mitm;
    return 0;
}

void mitm_free(struct mitm *mitm)
{
    if (!mitm)
        return;
    pthread_mutex_destroy(&mitm->mutex);
    mem_free(mitm);
}

/* ---- packets ---- */

static uint32_t get4(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put2(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put4(uint8_t *at, uint32_t value)
{
    put2(at, value >> 16);
    put2(at + 2, value & 0xffff);
}

static bool segment_read(uint8_t *packet, size_t length, struct segment *ret_segment)
{
    struct segment s = { .packet = packet };
    const uint8_t *tcp;
    size_t whole;

    if (length < IP_BYTES + TCP_BYTES || packet[0] >> 4 != 4 || packet[9] != IPPROTO_TCP)
        return false;
    s.ip_bytes = (size_t)(packet[0] & 15) * 4;
    whole = (size_t)(packet[2] << 8 | packet[3]);
    if (s.ip_bytes < IP_BYTES || whole > length || whole < s.ip_bytes + TCP_BYTES)
        return false;
    tcp = packet + s.ip_bytes;
    s.tcp_bytes = (size_t)(tcp[12] >> 4) * 4;
    if (s.tcp_bytes < TCP_BYTES || whole < s.ip_bytes + s.tcp_bytes)
        return false;
    s.data = whole - s.ip_bytes - s.tcp_bytes;
    s.from = (struct end){ get4(packet + 12), (uint16_t)(tcp[0] << 8 | tcp[1]) };
    s.to = (struct end){ get4(packet + 16), (uint16_t)(tcp[2] << 8 | tcp[3]) };
    s.seq = get4(tcp + 4);
    s.ack = get4(tcp + 8);
    s.flags = tcp[13];
    *ret_segment = s;
    return true;
}

static uint8_t *segment_data(const struct segment *s)
{
    return s->packet + s->ip_bytes + s->tcp_bytes;
}

static uint32_t sum_words(uint32_t sum, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i + 1 < length; i += 2)
        sum += (uint32_t)(bytes[i] << 8 | bytes[i + 1]);
    if (length % 2)
        sum += (uint32_t)bytes[length - 1] << 8;
    return sum;
}

static uint32_t sum_fold(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return ~sum & 0xffff;
}

/* Writes lengths, numbers and checksums, and sends the packet on. */
static void segment_emit(struct segment *s, mitm_emit_fn *emit, void *arg)
{
    uint8_t *ip = s->packet, *tcp = s->packet + s->ip_bytes;
    size_t whole = s->ip_bytes + s->tcp_bytes + s->data;
    uint32_t sum;

    put2(ip + 2, (uint32_t)whole);
    put2(ip + 10, 0);
    put2(ip + 10, sum_fold(sum_words(0, ip, s->ip_bytes)));
    put4(tcp + 4, s->seq);
    put4(tcp + 8, s->ack);
    put2(tcp + 16, 0);
    sum = sum_words(IPPROTO_TCP + (uint32_t)(s->tcp_bytes + s->data), ip + 12, 8);
    put2(tcp + 16, sum_fold(sum_words(sum, tcp, s->tcp_bytes + s->data)));
    emit(arg, (const char *)s->packet, whole);
}

/* ---- which connections ---- */

static bool same(const struct end *one, const struct end *other)
{
    return one->ip == other->ip && one->port == other->port;
}

/* The address of this side in each network ends in 1, that of a host in 2 (networks.h). */
static bool mitm_wants(const struct mitm *mitm, const struct segment *s)
{
    bool driver = (s->from.ip & 0xff) == 1 || (s->to.ip & 0xff) == 1;

    return s->from.port != NETWORKS_SSH_PORT && s->to.port != NETWORKS_SSH_PORT &&
           driver == (mitm->way == MITM_DRIVER);
}

static struct victim *mitm_find(struct mitm *mitm, const struct segment *s)
{
    struct victim *victim;

    for (uint32_t i = 0; i < mitm->victim_count; i++) {
        victim = &mitm->victims[i];
        if ((same(&victim->from, &s->from) && same(&victim->to, &s->to)) ||
            (same(&victim->from, &s->to) && same(&victim->to, &s->from)))
            return victim;
    }
    if (mitm->victim_count == VICTIMS || !mitm_wants(mitm, s))
        return NULL;
    victim = &mitm->victims[mitm->victim_count++];
    *victim = (struct victim){ .from = s->from,
                               .to = s->to,
                               .harm = (enum mitm_harm)rng_below(&mitm->rng, MITM_HARMS),
                               .spared = (uint32_t)rng_below(&mitm->rng, SPARED),
                               .fresh = s->flags & FLAG_SYN };
    if (rng_below(&mitm->rng, 2)) {
        victim->from = s->to;
        victim->to = s->from;
    }
    return victim;
}

/* ---- the harm ---- */

/* Sends bytes of its own, as if they followed at s->seq. */
static void emit_foreign(const struct segment *s, const uint8_t *bytes, size_t length, uint32_t seq,
                         mitm_emit_fn *emit, void *arg)
{
    uint8_t packet[IP_BYTES * 6 + SEGMENT_MAX];
    struct segment foreign = *s;

    memcpy(packet, s->packet, s->ip_bytes + s->tcp_bytes);
    foreign.packet = packet;
    foreign.data = length;
    foreign.seq = seq;
    memcpy(segment_data(&foreign), bytes, length);
    segment_emit(&foreign, emit, arg);
}

/* Decides what the receiver gets in place of this segment. false: that would be no harm. */
static bool harm_begin(struct mitm *mitm, struct victim *victim, const struct segment *s)
{
    const uint8_t *data = segment_data(s);
    size_t half = s->data / 2, at;

    victim->cut = s->seq;
    victim->cut_end = s->seq + (uint32_t)s->data;
    victim->shift = 0;
    switch (victim->harm) {
    case MITM_CHANGE:
        at = (size_t)rng_below(&mitm->rng, s->data);
        memcpy(victim->bytes, data, s->data);
        victim->bytes[at] ^= (uint8_t)(1u << rng_below(&mitm->rng, 8));
        break;
    case MITM_SWAP:
        memcpy(victim->bytes, data + half, s->data - half);
        memcpy(victim->bytes + (s->data - half), data, half);
        if (!memcmp(victim->bytes, data, s->data))
            return false;
        break;
    case MITM_DROP: victim->shift = -(int32_t)s->data; break;
    case MITM_REPEAT: victim->shift = (int32_t)s->data; break;
    default:
        victim->cut_end = victim->cut;
        victim->shift = FOREIGN;
        break;
    }
    return true;
}

/* A segment of the harmed direction: the bytes that were replaced are replaced again when they are
 * sent again, those that were dropped are dropped again, and all behind them is shifted. */
static void mend_forward(const struct victim *victim, struct segment *s)
{
    uint8_t *data = segment_data(s);
    int32_t before = (int32_t)(victim->cut - s->seq);    /* bytes before the harm; < 0: none */
    int32_t until = (int32_t)(victim->cut_end - s->seq); /* bytes before its end */

    if (!victim->shift) {
        for (int32_t i = before > 0 ? before : 0; i < until && i < (int32_t)s->data; i++)
            data[i] = victim->bytes[i - before];
    } else if (victim->shift < 0 && until > 0 && before < (int32_t)s->data) {
        size_t kept = before > 0 ? (size_t)before : 0;
        size_t gone = (size_t)until < s->data ? (size_t)until : s->data;

        memmove(data + kept, data + gone, s->data - gone);
        s->data -= gone - kept;
        if (before < 0)
            s->seq = victim->cut;
    } else if (until <= 0) {
        s->seq += (uint32_t)victim->shift;
    } else if (until < (int32_t)s->data) {
        s->data = (size_t)until; /* the sender sends the rest again */
        s->flags &= (uint8_t)~FLAG_FIN;
        s->packet[s->ip_bytes + 13] = s->flags;
    }
}

/* An acknowledgement of the harmed direction. */
static void mend_back(struct victim *victim, struct segment *s)
{
    int32_t beyond = (int32_t)(s->ack - (victim->shift < 0 ? victim->cut : victim->cut_end));

    if (!(s->flags & FLAG_ACK))
        return;
    if (victim->shift ? beyond > 0 : beyond >= 0)
        victim->reached = true;
    if (victim->shift < 0 && beyond >= 0)
        s->ack -= (uint32_t)victim->shift;
    else if (victim->shift > 0 && beyond > 0)
        s->ack -= beyond < victim->shift ? (uint32_t)beyond : (uint32_t)victim->shift;
}

/* true: this segment is the one that is harmed. Bytes that are sent again may have been received
 * before, so they are spared. */
static bool harms_now(struct mitm *mitm, struct victim *victim, const struct segment *s)
{
    const uint32_t end = s->seq + (uint32_t)s->data + (s->flags & FLAG_SYN ? 1 : 0);
    bool follows = victim->begun && s->seq == victim->next;

    if (!victim->begun || (int32_t)(end - victim->next) > 0)
        victim->next = end;
    victim->begun = true;
    if (!follows || victim->ended || mitm->harmed >= mitm->most || s->data < 2 ||
        s->data > SEGMENT_MAX || s->flags & (FLAG_SYN | FLAG_FIN | FLAG_RST))
        return false;
    if (victim->spared) {
        victim->spared--;
        return false;
    }
    return harm_begin(mitm, victim, s);
}

static void pass(struct mitm *mitm, struct victim *victim, struct segment *s, mitm_emit_fn *emit,
                 void *arg)
{
    bool forward = same(&victim->from, &s->from);
    uint8_t foreign[FOREIGN];

    if (s->flags & FLAG_SYN) /* a new connection with the ports of an old one */
        *victim = (struct victim){ .from = victim->from,
                                   .to = victim->to,
                                   .harm = victim->harm,
                                   .spared = victim->spared,
                                   .fresh = true,
                                   .harmed = false };
    victim->ended |= s->flags & (FLAG_FIN | FLAG_RST);
    if (victim->harmed) {
        if (forward)
            mend_forward(victim, s);
        else
            mend_back(victim, s);
        victim->behind += forward ? s->data : 0;
        segment_emit(s, emit, arg);
        return;
    }
    if (!forward || !harms_now(mitm, victim, s)) {
        emit(arg, (const char *)s->packet, s->ip_bytes + s->tcp_bytes + s->data);
        return;
    }
    victim->harmed = true;
    mitm->harmed++;
    if (victim->harm == MITM_INJECT) {
        for (size_t i = 0; i < FOREIGN; i++)
            foreign[i] = (uint8_t)rng_next(&mitm->rng);
        emit_foreign(s, foreign, FOREIGN, victim->cut, emit, arg);
    } else if (victim->harm == MITM_REPEAT) {
        emit_foreign(s, segment_data(s), s->data, victim->cut, emit, arg);
        s->seq += (uint32_t)s->data; /* the same bytes again, as if they followed */
        segment_emit(s, emit, arg);
        return;
    }
    mend_forward(victim, s);
    segment_emit(s, emit, arg);
}

void mitm_pass(struct mitm *mitm, char *packet, size_t length, mitm_emit_fn *emit, void *arg)
{
    struct victim *victim = NULL;
    struct segment s;

    pthread_mutex_lock(&mitm->mutex);
    if (segment_read((uint8_t *)packet, length, &s))
        victim = mitm_find(mitm, &s);
    if (victim)
        pass(mitm, victim, &s, emit, arg);
    else
        emit(arg, packet, length);
    pthread_mutex_unlock(&mitm->mutex);
}

/* ---- the counts ---- */

void mitm_rest(struct mitm *mitm)
{
    pthread_mutex_lock(&mitm->mutex);
    mitm->most = 0;
    pthread_mutex_unlock(&mitm->mutex);
}

void mitm_look(struct mitm *mitm, struct mitm_count *ret_count)
{
    *ret_count = (struct mitm_count){ .all = 0 };
    pthread_mutex_lock(&mitm->mutex);
    for (uint32_t i = 0; i < mitm->victim_count; i++) {
        const struct victim *victim = &mitm->victims[i];

        if (!victim->harmed)
            continue;
        ret_count->harmed[victim->harm]++;
        ret_count->all++;
        ret_count->old += !victim->fresh;
        if (!victim->reached || victim->ended)
            continue;
        ret_count->open++;
        if (mitm->way == MITM_MEMBERS && victim->behind < BEHIND_BYTES)
            continue;
        ret_count->unnoticed++;
        (void)snprintf(ret_count->where, sizeof(ret_count->where),
                       "bytes to %u.%u.%u.%u port %u were %s", victim->to.ip >> 24,
                       victim->to.ip >> 16 & 255, victim->to.ip >> 8 & 255, victim->to.ip & 255,
                       victim->to.port, mitm_harm_names[victim->harm]);
    }
    pthread_mutex_unlock(&mitm->mutex);
}
