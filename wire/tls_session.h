/*
 * tls_session.h: one connection's part of the TLS, for the files of this folder.
 */
#ifndef WIRE_TLS_SESSION_H
#define WIRE_TLS_SESSION_H

#include "wire/tls.h"

#include <openssl/ssl.h>

/* Given to the caller. NULL: no memory. */
SSL *tls_session(struct tls *tls, bool server) MUST_CHECK;

/* The handshake is done: did both sides prove that they have the key? */
bool tls_proved(const SSL *session);

/* A library's error, for a person: whose fault, as far as it can be told. */
const char *tls_reason(unsigned long error);

#endif
