/*
 * store_sqlite.h: the blacklist in a SQLite file (sqlite/db.h says what a damaged, foreign or
 * locked one is answered with).
 */
#ifndef BLACKLIST_STORE_STORE_SQLITE_H
#define BLACKLIST_STORE_STORE_SQLITE_H

#include "blacklist/store.h"
#include "sqlite/db.h"

/* The options are borrowed until it is closed; codes as of db_open. */
int store_sqlite_open(const char *path, const struct db_options *options,
                      struct blacklist_store **ret_store, struct hvd_err *err) MUST_CHECK;

/* The step that makes its tables, for the schema of a file that holds more than a blacklist. */
extern const char store_sqlite_step_1[];

/*
 * The same in such a file, which is borrowed until the store is closed. Here a put or clear belongs
 * to the transaction that the caller has begun: it is durable with that, and after a failure that
 * is rolled back.
 */
int store_sqlite_attach(struct db *db, struct blacklist_store **ret_store,
                        struct hvd_err *err) MUST_CHECK;

#endif
