/*
 * test_manifest.c: state/manifest: the layout of a state, the limits of its entries, and a digest
 * over all fields.
 */
#include "state/manifest.h"

#include "proto/entry_type.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

static int add(struct manifest *manifest, const char *name, uint64_t bytes, uint32_t kind)
{
    return manifest_add(manifest, name, bytes, kind, false, NULL);
}

static struct manifest manifest;
static struct arena arena;

static void end_case(struct test *t)
{
    (void)t;
    arena_release(&arena);
    manifest_release(&manifest);
}
FIXTURE(NULL, end_case)

TEST(lays_out_replicated_first)
{
    manifest_init(&manifest);
    CHECK_OK(t, add(&manifest, "weights", 100, ENTRY_REPLICATED));
    CHECK_OK(t, add(&manifest, "random", 8, ENTRY_PER_RANK));
    CHECK_OK(t, add(&manifest, "nothing", 0, ENTRY_REPLICATED));
    CHECK_OK(t, manifest_add(&manifest, "list", 56, ENTRY_REPLICATED, true, NULL));
    CHECK_OK(t, manifest_add(&manifest, "map", 57, ENTRY_PER_RANK, true, NULL));
    CHECK_OK(t, add(&manifest, "last", 1, ENTRY_PER_RANK));
    CHECK_OK(t, add(&manifest, "big", MIB, ENTRY_REPLICATED));
    manifest_seal(&manifest);
    CHECK_INT(t, manifest.items[0].offset, ==, 0);
    CHECK_INT(t, manifest.items[2].offset, ==, 128);
    CHECK_INT(t, manifest.items[3].offset, ==, 128);
    CHECK_INT(t, manifest.items[6].offset, ==, 192);
    CHECK_INT(t, manifest.replicated_bytes, ==, 2 * MIB);
    CHECK_INT(t, manifest.items[1].offset, ==, 2 * MIB);
    CHECK_INT(t, manifest.items[4].offset, ==, 2 * MIB + 64);
    CHECK_INT(t, manifest.items[5].offset, ==, 2 * MIB + 192);
    CHECK_INT(t, manifest.bytes, ==, 3 * MIB);
}

TEST(a_manifest_of_no_entries_is_empty)
{
    manifest_init(&manifest);
    manifest_seal(&manifest);
    CHECK_INT(t, manifest.bytes, ==, 0);
    CHECK_INT(t, manifest.replicated_bytes, ==, 0);
    CHECK(t, manifest.digest != 0);
    manifest_release(&manifest);
    CHECK_OK(t, add(&manifest, "nothing", 0, ENTRY_REPLICATED));
    manifest_seal(&manifest);
    CHECK_INT(t, manifest.bytes, ==, 0);
}

TEST(a_sealed_manifest_does_not_change)
{
    uint64_t digest;

    manifest_init(&manifest);
    CHECK_OK(t, add(&manifest, "a", 3 * MIB, ENTRY_PER_RANK));
    manifest_seal(&manifest);
    digest = manifest.digest;
    CHECK_CODE(t, add(&manifest, "b", 1, ENTRY_PER_RANK), HVD_E_STATE);
    manifest_seal(&manifest);
    CHECK_INT(t, manifest.digest, ==, digest);
    CHECK_INT(t, manifest.bytes, ==, 3 * MIB);
    CHECK_INT(t, manifest.count, ==, 1);
}

TEST(refuses_invalid_names)
{
    char longest[LIMIT_MANIFEST_NAME_BYTES + 2];
    struct hvd_err err;

    manifest_init(&manifest);
    memset(longest, 'n', sizeof(longest));
    longest[LIMIT_MANIFEST_NAME_BYTES + 1] = '\0';
    CHECK_CODE(t, add(&manifest, NULL, 1, ENTRY_REPLICATED), HVD_E_INVAL);
    CHECK_CODE(t, add(&manifest, "", 1, ENTRY_REPLICATED), HVD_E_INVAL);
    CHECK_CODE(t, add(&manifest, longest, 1, ENTRY_REPLICATED), HVD_E_INVAL);
    CHECK_CODE(t, add(&manifest, "a\nb", 1, ENTRY_REPLICATED), HVD_E_INVAL);
    CHECK_CODE(t, add(&manifest, "a\tb", 1, ENTRY_REPLICATED), HVD_E_INVAL);
    CHECK_CODE(t, manifest_add(&manifest, "\xff", 1, ENTRY_REPLICATED, false, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "\"\\xff\"");
    CHECK_CODE(t, add(&manifest, "kind", 1, ENTRY_KIND_COUNT), HVD_E_INVAL);
    CHECK_INT(t, manifest.count, ==, 0);
    longest[LIMIT_MANIFEST_NAME_BYTES] = '\0';
    CHECK_OK(t, add(&manifest, longest, 1, ENTRY_REPLICATED));
    CHECK_OK(t, add(&manifest, "Schl\xc3\xbcssel", 1, ENTRY_REPLICATED));
    CHECK_CODE(t, manifest_add(&manifest, longest, 2, ENTRY_PER_RANK, true, &err), HVD_E_EXISTS);
    CHECK_INT(t, manifest.count, ==, 2);
}

TEST(refuses_more_than_the_limit)
{
    struct hvd_err err;

    manifest_init(&manifest);
    CHECK_CODE(t, add(&manifest, "a", UINT64_MAX, ENTRY_REPLICATED), HVD_E_LIMIT);
    CHECK_CODE(t, manifest_add(&manifest, "a", UINT64_MAX, ENTRY_PER_RANK, true, &err),
               HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "LIMIT_STATE_BYTES");
    CHECK_CODE(t, add(&manifest, "a", LIMIT_STATE_BYTES, ENTRY_REPLICATED), HVD_E_LIMIT);
    CHECK_OK(t, add(&manifest, "a", LIMIT_STATE_BYTES / 2, ENTRY_REPLICATED));
    CHECK_CODE(t, add(&manifest, "b", LIMIT_STATE_BYTES / 2, ENTRY_PER_RANK), HVD_E_LIMIT);
    CHECK_OK(t, add(&manifest, "b", LIMIT_STATE_BYTES / 2 - 2 * MIB, ENTRY_PER_RANK));
    CHECK_CODE(t, add(&manifest, "c", 1, ENTRY_PER_RANK), HVD_E_LIMIT);
    CHECK_OK(t, add(&manifest, "d", 0, ENTRY_PER_RANK));
    manifest_seal(&manifest);
    CHECK_INT(t, manifest.bytes, ==, LIMIT_STATE_BYTES - 2 * MIB);
}

TEST_FLAGS(refuses_one_entry_too_many, TEST_NO_TORTURE)
{
    struct hvd_err err;
    char name[16];

    manifest_init(&manifest);
    for (int i = 0; i < LIMIT_MANIFEST_ENTRIES; i++) {
        snprintf(name, sizeof(name), "%d", i);
        CHECK_OK(t, add(&manifest, name, 1, ENTRY_REPLICATED));
    }
    CHECK_CODE(t, manifest_add(&manifest, "x", 1, 0, false, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "LIMIT_MANIFEST_ENTRIES");
    CHECK_INT(t, manifest.count, ==, LIMIT_MANIFEST_ENTRIES);
    manifest_seal(&manifest);
    CHECK_INT(t, manifest.bytes, ==, 4 * MIB);
}

static int digest_with(const char *first, const char *second, uint64_t bytes, uint32_t kind,
                       bool custom, uint64_t *ret_digest)
{
    struct manifest made;
    int rc;

    manifest_init(&made);
    rc = add(&made, first, 8, ENTRY_REPLICATED);
    if (!rc)
        rc = manifest_add(&made, second, bytes, kind, custom, NULL);
    manifest_seal(&made);
    *ret_digest = made.digest;
    manifest_release(&made);
    return rc;
}

TEST(the_digest_covers_the_whole_manifest)
{
    uint64_t digests[8];

    CHECK_OK(t, digest_with("a", "b", 8, ENTRY_REPLICATED, false, &digests[0]));
    CHECK_OK(t, digest_with("b", "a", 8, ENTRY_REPLICATED, false, &digests[1]));
    CHECK_OK(t, digest_with("a", "c", 8, ENTRY_REPLICATED, false, &digests[2]));
    CHECK_OK(t, digest_with("a", "b", 9, ENTRY_REPLICATED, false, &digests[3]));
    CHECK_OK(t, digest_with("a", "b", 8, ENTRY_PER_RANK, false, &digests[4]));
    CHECK_OK(t, digest_with("a", "b", 8, ENTRY_REPLICATED, true, &digests[5]));
    CHECK_OK(t, digest_with("ab", "b", 8, ENTRY_REPLICATED, false, &digests[6]));
    CHECK_OK(t, digest_with("a", "b", 8, ENTRY_REPLICATED, false, &digests[7]));
    for (size_t i = 0; i < 7; i++)
        for (size_t k = 0; k < i; k++)
            CHECK(t, digests[i] != digests[k]);
    CHECK(t, digests[7] == digests[0]);
}

/* Adds entry "b" with this type after "a", and computes the digest. */
static int digest_of_type(uint32_t type, uint64_t *ret_digest)
{
    struct manifest made;
    int rc;

    manifest_init(&made);
    rc = add(&made, "a", 8, ENTRY_REPLICATED);
    if (!rc)
        rc = manifest_add_typed(&made, "b", 8, ENTRY_REPLICATED, false, type, NULL);
    manifest_seal(&made);
    *ret_digest = made.digest;
    manifest_release(&made);
    return rc;
}

/* Commits that lie in memory from before there were types are read by this digest. */
TEST(the_digest_covers_types_that_are_known)
{
    uint64_t untyped, int64, float64;

    CHECK_OK(t, digest_of_type(ENTRY_TYPE_BYTES, &untyped));
    CHECK_OK(t, digest_of_type(ENTRY_TYPE_OF(HVD_INT64), &int64));
    CHECK_OK(t, digest_of_type(ENTRY_TYPE_OF(HVD_FLOAT64), &float64));
    CHECK(t, untyped == UINT64_C(0xd7c6991cb13dc108));
    CHECK(t, int64 != untyped && float64 != untyped && int64 != float64);
}

TEST(says_its_entries)
{
    struct msg_entry_list list;

    manifest_init(&manifest);
    arena_init(&arena, 1 << 16);
    CHECK_OK(t, manifest_entries(&manifest, &arena, &list));
    CHECK_INT(t, list.count, ==, 0);
    CHECK_OK(t, add(&manifest, "weights", 100, ENTRY_REPLICATED));
    CHECK_OK(t, manifest_add(&manifest, "map", 57, ENTRY_PER_RANK, true, NULL));
    CHECK_OK(t, manifest_add_typed(&manifest, "factors", 12, ENTRY_REPLICATED, false,
                                   ENTRY_TYPE_OF(HVD_FLOAT32), NULL));
    manifest_seal(&manifest);
    CHECK_OK(t, manifest_entries(&manifest, &arena, &list));
    CHECK_INT(t, list.count, ==, 3);
    CHECK(t, !list.items[0].custom && list.items[0].type == ENTRY_TYPE_BYTES);
    CHECK(t, list.items[1].custom && list.items[1].offset == MIB);
    CHECK_INT(t, list.items[2].type, ==, ENTRY_TYPE_OF(HVD_FLOAT32));
    CHECK_INT(t, list.items[2].offset, ==, 128);
    CHECK_TEXT(t, list.items[0].name, "weights");
    CHECK_INT(t, list.items[0].bytes, ==, 100);
    CHECK_INT(t, list.items[1].bytes, ==, 57);
    CHECK_INT(t, list.items[1].kind, ==, ENTRY_PER_RANK);
}
