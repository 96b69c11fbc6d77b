/*
 * place.h: computes a member's place in a round from the list of members alone, so that driver and
 * workers cannot disagree.
 *
 * rank is the index in the list. local_rank is the number of members on the same host with a lower
 * slot. cross_rank is the number of earlier hosts that have a member with the same local_rank;
 * hosts are ordered by their first member in the list.
 */
#ifndef PROTO_PLACE_H
#define PROTO_PLACE_H

#include "proto/msg.h"

struct place {
    uint32_t rank, size;
    uint32_t local_rank, local_size;
    uint32_t cross_rank, cross_size;
};

/* Computes the place of one member. 0, HVD_E_NOTFOUND when the incarnation is no member,
 * HVD_E_NOMEM. It takes as long as place_all, which it calls. */
int place_find(const struct msg_member_list *members, uint64_t incarnation,
               struct place *ret_place) MUST_CHECK;

/* Computes the places of all members, in their order: ret_places has room for each member. 0,
 * HVD_E_NOMEM. The time grows with the number of members, and with the square of the number of
 * members on one host. */
int place_all(const struct msg_member_list *members, struct place *ret_places) MUST_CHECK;

#endif
