/*
 * place.h: what a member's place is in a round, worked out from the members alone, so that driver
 * and workers cannot disagree.
 *
 * rank is the index in the list. local_rank counts the members of the same host with a lower slot;
 * cross_rank counts the hosts, in the order in which the list first names them, that have a member
 * with the same local_rank.
 */
#ifndef PROTO_PLACE_H
#define PROTO_PLACE_H

#include "proto/msg.h"

struct place {
    uint32_t rank, size;
    uint32_t local_rank, local_size;
    uint32_t cross_rank, cross_size;
};

/* 0, HVD_E_NOTFOUND when the incarnation is no member, HVD_E_NOMEM. Linear in the members. */
int place_find(const struct msg_member_list *members, uint64_t incarnation,
               struct place *ret_place) MUST_CHECK;

/* Of all members, in their order: ret_places has room for each. 0, HVD_E_NOMEM. Linear in the
 * members but for those of one host. */
int place_all(const struct msg_member_list *members, struct place *ret_places) MUST_CHECK;

#endif
