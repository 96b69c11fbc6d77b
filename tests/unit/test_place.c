#include "base/mem.h"
#include "proto/place.h"
#include "tests/lib/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MEMBERS_MAX 8

/* Both ways to the same. */
static int compare_with_all(const struct msg_member_list *list, uint64_t incarnation,
                            const struct place *place)
{
    struct place all[MEMBERS_MAX];
    int rc = place_all(list, all);

    if (!rc && memcmp(&all[incarnation - 1], place, sizeof(*place)) != 0)
        rc = HVD_E_MISMATCH;
    return rc;
}

/* "a0 b0 a1": member i is incarnation i + 1 on host and slot. */
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

static void alone(struct test *t)
{
    CHECK_PLACE(t, "a0", 1, "0/1 local 0/1 cross 0/1");
    CHECK_PLACE(t, "a5", 1, "0/1 local 0/1 cross 0/1");
out:;
}

static void two_hosts_of_two(struct test *t)
{
    const char *members = "a0 a1 b0 b1";

    CHECK_PLACE(t, members, 1, "0/4 local 0/2 cross 0/2");
    CHECK_PLACE(t, members, 2, "1/4 local 1/2 cross 0/2");
    CHECK_PLACE(t, members, 3, "2/4 local 0/2 cross 1/2");
    CHECK_PLACE(t, members, 4, "3/4 local 1/2 cross 1/2");
out:;
}

/* Only hosts that have that local rank are counted across. */
static void hosts_of_different_sizes(struct test *t)
{
    CHECK_PLACE(t, "a0 b0 b1", 1, "0/3 local 0/1 cross 0/2");
    CHECK_PLACE(t, "a0 b0 b1", 2, "1/3 local 0/2 cross 1/2");
    CHECK_PLACE(t, "a0 b0 b1", 3, "2/3 local 1/2 cross 0/1");
    CHECK_PLACE(t, "a0 a1 b0 c0 c1", 3, "2/5 local 0/1 cross 1/3");
    CHECK_PLACE(t, "a0 a1 b0 c0 c1", 5, "4/5 local 1/2 cross 1/2");
out:;
}

static void ranks_of_hosts_that_interleave(struct test *t)
{
    CHECK_PLACE(t, "b0 a0 b1 a1", 1, "0/4 local 0/2 cross 0/2");
    CHECK_PLACE(t, "b0 a0 b1 a1", 2, "1/4 local 0/2 cross 1/2");
    CHECK_PLACE(t, "b0 a0 b1 a1", 3, "2/4 local 1/2 cross 0/2");
    CHECK_PLACE(t, "b0 a0 b1 a1", 4, "3/4 local 1/2 cross 1/2");
out:;
}

/* A survivor keeps its low rank, whatever its slot is; the local rank is by slot. */
static void local_ranks_are_by_slot(struct test *t)
{
    CHECK_PLACE(t, "a7 b3 a2", 1, "0/3 local 1/2 cross 0/1");
    CHECK_PLACE(t, "a7 b3 a2", 2, "1/3 local 0/1 cross 1/2");
    CHECK_PLACE(t, "a7 b3 a2", 3, "2/3 local 0/2 cross 0/2");
out:;
}

static void who_is_no_member_has_no_place(struct test *t)
{
    char text[64];

    CHECK_CODE(t, find("a0 b0", 3, text), HVD_E_NOTFOUND);
    CHECK_TEXT(t, text, "99/0 local 0/0 cross 0/0");
    CHECK_CODE(t, find("", 1, text), HVD_E_NOTFOUND);
out:;
}

/* 1,000 hosts of 5; the last slot of the odd ones is missing. */
static void thousands(struct test *t)
{
    enum { HOSTS = 1000, SLOTS = 5 };
    struct msg_member *items = mem_zalloc_array((size_t)HOSTS * SLOTS, sizeof(*items));
    char(*hosts)[16] = mem_zalloc_array(HOSTS, sizeof(*hosts));
    struct msg_member_list list = { items, 0 };
    struct place place;

    CHECK(t, items && hosts);
    for (uint32_t host = 0; host < HOSTS; host++)
        snprintf(hosts[host], sizeof(hosts[host]), "host-%u", host);
    for (uint32_t slot = 0; slot < SLOTS; slot++) { /* round robin: as interleaved as can be */
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

TESTS(CASE(alone), CASE(two_hosts_of_two), CASE(hosts_of_different_sizes),
      CASE(ranks_of_hosts_that_interleave), CASE(local_ranks_are_by_slot),
      CASE(who_is_no_member_has_no_place), CASE(thousands))
