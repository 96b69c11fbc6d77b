/*
 * test_place.c: proto/place: ranks, local ranks and cross ranks of members on hosts of any shape.
 */
#include "base/mem.h"
#include "proto/place.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

#define MEMBERS_MAX 8

/* Compares the place with that from place_all, which finds the places of all members. */
static int compare_with_all(const struct msg_member_list *list, uint64_t incarnation,
                            const struct place *place)
{
    struct place all[MEMBERS_MAX];
    int rc = place_all(list, all);

    if (!rc && memcmp(&all[incarnation - 1], place, sizeof(*place)) != 0)
        rc = HVD_E_MISMATCH;
    return rc;
}

/* Finds the place of a member. In "a0 b0 a1" the members are incarnations 1, 2 and 3, with their
 * hosts and slots. */
static int find(const char *members, uint64_t incarnation, char text[64])
{
    struct msg_member items[MEMBERS_MAX];
    char hosts[MEMBERS_MAX][2];
    struct msg_member_list list = { items, 0 };
    struct place place = { .rank = 99 };
    int rc;

    for (const char *at = members; *at; at += at[2] ? 3 : 2) {
        snprintf(hosts[list.count], sizeof(hosts[0]), "%c", at[0]);
        items[list.count] = (struct msg_member){ .incarnation = list.count + 1,
                                                 .host = hosts[list.count],
                                                 .slot = (uint32_t)(at[1] - '0') };
        list.count++;
    }
    rc = place_find(&list, incarnation, &place);
    if (!rc)
        rc = compare_with_all(&list, incarnation, &place);
    snprintf(text, 64, "%u/%u local %u/%u cross %u/%u", place.rank, place.size, place.local_rank,
             place.local_size, place.cross_rank, place.cross_size);
    return rc;
}

#define CHECK_PLACE(t, members, incarnation, expected)       \
    do {                                                     \
        char place_text[64];                                 \
        CHECK_OK(t, find(members, incarnation, place_text)); \
        CHECK_TEXT(t, place_text, expected);                 \
    } while (0)

TEST(alone)
{
    CHECK_PLACE(t, "a0", 1, "0/1 local 0/1 cross 0/1");
    CHECK_PLACE(t, "a5", 1, "0/1 local 0/1 cross 0/1");
out:;
}

TEST(two_hosts_of_two)
{
    const char *members = "a0 a1 b0 b1";

    CHECK_PLACE(t, members, 1, "0/4 local 0/2 cross 0/2");
    CHECK_PLACE(t, members, 2, "1/4 local 1/2 cross 0/2");
    CHECK_PLACE(t, members, 3, "2/4 local 0/2 cross 1/2");
    CHECK_PLACE(t, members, 4, "3/4 local 1/2 cross 1/2");
out:;
}

/* The cross rank counts only hosts that have this local rank. */
TEST(hosts_of_different_sizes)
{
    CHECK_PLACE(t, "a0 b0 b1", 1, "0/3 local 0/1 cross 0/2");
    CHECK_PLACE(t, "a0 b0 b1", 2, "1/3 local 0/2 cross 1/2");
    CHECK_PLACE(t, "a0 b0 b1", 3, "2/3 local 1/2 cross 0/1");
    CHECK_PLACE(t, "a0 a1 b0 c0 c1", 3, "2/5 local 0/1 cross 1/3");
    CHECK_PLACE(t, "a0 a1 b0 c0 c1", 5, "4/5 local 1/2 cross 1/2");
out:;
}

TEST(ranks_of_hosts_that_interleave)
{
    CHECK_PLACE(t, "b0 a0 b1 a1", 1, "0/4 local 0/2 cross 0/2");
    CHECK_PLACE(t, "b0 a0 b1 a1", 2, "1/4 local 0/2 cross 1/2");
    CHECK_PLACE(t, "b0 a0 b1 a1", 3, "2/4 local 1/2 cross 0/2");
    CHECK_PLACE(t, "b0 a0 b1 a1", 4, "3/4 local 1/2 cross 1/2");
out:;
}

/* A survivor keeps its low rank, with any slot; the local rank is by slot. */
TEST(local_ranks_are_by_slot)
{
    CHECK_PLACE(t, "a7 b3 a2", 1, "0/3 local 1/2 cross 0/1");
    CHECK_PLACE(t, "a7 b3 a2", 2, "1/3 local 0/1 cross 1/2");
    CHECK_PLACE(t, "a7 b3 a2", 3, "2/3 local 0/2 cross 0/2");
out:;
}

TEST(a_worker_outside_the_round_has_no_place)
{
    char text[64];

    CHECK_CODE(t, find("a0 b0", 3, text), HVD_E_NOTFOUND);
    CHECK_TEXT(t, text, "99/0 local 0/0 cross 0/0");
    CHECK_CODE(t, find("", 1, text), HVD_E_NOTFOUND);
out:;
}

/* 1,000 hosts of 5 slots; the odd hosts lack the last slot. */
TEST(thousands)
{
    enum { HOSTS = 1000, SLOTS = 5 };
    struct msg_member *items = mem_zalloc_array((size_t)HOSTS * SLOTS, sizeof(*items));
    char(*hosts)[16] = mem_zalloc_array(HOSTS, sizeof(*hosts));
    struct msg_member_list list = { items, 0 };
    struct place place;

    CHECK(t, items && hosts);
    for (uint32_t host = 0; host < HOSTS; host++)
        snprintf(hosts[host], sizeof(hosts[host]), "host-%u", host);
    /* round robin: neighbours in the list are on different hosts */
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        for (uint32_t host = 0; host < HOSTS; host++) {
            if (slot < SLOTS - 1 || host % 2 == 0)
                items[list.count++] = (struct msg_member){ .incarnation = 1 + host * SLOTS + slot,
                                                           .host = hosts[host],
                                                           .slot = slot };
        }
    }
    CHECK_OK(t, place_find(&list, 1 + 998 * SLOTS + 4, &place));
    CHECK_INT(t, place.rank, ==, 4499);
    CHECK_INT(t, place.size, ==, 4500);
    CHECK_INT(t, place.local_rank, ==, 4);
    CHECK_INT(t, place.local_size, ==, 5);
    CHECK_INT(t, place.cross_rank, ==, 499);
    CHECK_INT(t, place.cross_size, ==, 500);
    CHECK_OK(t, place_find(&list, 1 + 999 * SLOTS + 3, &place));
    CHECK_INT(t, place.rank, ==, 3999);
    CHECK_INT(t, place.local_size, ==, 4);
    CHECK_INT(t, place.cross_rank, ==, 999);
    CHECK_INT(t, place.cross_size, ==, 1000);
out:
    mem_free(items);
    mem_free(hosts);
}
