/*
 * join_places.h: where the driver may be: "main:7000,10.0.0.8:7000", as --join names it. Names are
 * looked up again before each attempt, because a driver may move.
 */
#ifndef AGENT_JOIN_PLACES_H
#define AGENT_JOIN_PLACES_H

#include "base/err.h"
#include "base/limits.h"
#include "wire/address.h"

struct join_places {
    char text[LIMIT_ADDRESSES][ADDRESS_TEXT_MAX]; /* numeric: "10.0.0.8:7000", "[fd00::8]:7000" */
    size_t count;
};

/* Checks the form of a list. HVD_E_INVAL: the list is empty, or an item is not HOST:PORT.
 * HVD_E_LIMIT: the list has more than LIMIT_ADDRESSES items. */
int join_places_check(const char *list, struct hvd_err *err) MUST_CHECK;

/* Looks up the names of a list that join_places_check has accepted, which may take some seconds. A
 * name without an address is left out. HVD_E_NOTFOUND: no name has an address, and err says why. */
int join_places_find(const char *list, struct join_places *ret_places,
                     struct hvd_err *err) MUST_CHECK;

#endif
