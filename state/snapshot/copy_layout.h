/*
 * copy_layout.h: where the entries of a copy are in a commit, and which bytes of the commit each
 * entry has written.
 */
#ifndef STATE_SNAPSHOT_COPY_LAYOUT_H
#define STATE_SNAPSHOT_COPY_LAYOUT_H

#include "state/snapshot/copy.h"

struct layout_item {
    const struct manifest_entry *entry; /* where the entry is in the commit */
    const struct copy_part *part;       /* where the entry is in live memory */
};

struct copy_layout {
    struct layout_item *items; /* sorted by offset */
    size_t count;
    const uint8_t *bytes; /* the commit, where each custom entry has its length */
};

/* A range of the commit's bytes that one entry has written. */
struct layout_piece {
    const struct layout_item *item;
    uint64_t from;
    uint64_t to;
};

/* Makes the layout of the entries whose kinds are in `which` (a set of COPY_...). HVD_E_NOMEM. */
int copy_layout_init(struct copy_layout *layout, const struct copy *copy,
                     unsigned which) MUST_CHECK;
void copy_layout_release(struct copy_layout *layout);

/* Returns the index of the first item that may have bytes at or after the offset: a search for such
 * bytes begins at this item. */
size_t copy_layout_first(const struct copy_layout *layout, uint64_t offset);

/* Finds the next piece of an entry inside [from, to), beginning at the item *at, and sets *at to
 * the item where the next search begins. Returns false if there is no such piece. */
bool copy_layout_next(const struct copy_layout *layout, uint64_t from, uint64_t to, size_t *at,
                      struct layout_piece *ret_piece);

/* Returns true if an entry in device memory has bytes in [from, to). */
bool copy_layout_on_device(const struct copy_layout *layout, uint64_t from, uint64_t to);

/* Returns the address of the piece's first byte in live memory. */
uint8_t *layout_piece_live(const struct layout_piece *piece);

#endif
