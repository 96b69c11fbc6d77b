/*
 * loop_client.h: plain sockets that ask a server which lives in the loop of the same test, and turn
 * that loop while they read. They never block.
 */
#ifndef TESTS_LIB_LOOP_CLIENT_H
#define TESTS_LIB_LOOP_CLIENT_H

#include "base/base.h"
#include "wire/address.h"

struct event;
struct event_base;

struct loop_client {
    struct event_base *base;
    struct event *tick;
    struct address place; /* of the server; the test fills it in */
};

/* False: without memory. */
bool loop_client_init(struct loop_client *client);
void loop_client_release(struct loop_client *client);

/* Connects and sends the text. Returns the socket; negative: it failed. */
int loop_client_ask(struct loop_client *client, const char *text);

/* Reads until the text of this call has `word`, or until the end of the connection; then the socket
 * is closed if word is NULL. Returns what came, which the next call replaces. */
const char *loop_client_read(struct loop_client *client, int fd, const char *word);

#endif
