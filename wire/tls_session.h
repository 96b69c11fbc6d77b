/*
 * tls_session.h: the TLS session of one connection, for the files of this folder.
 */
#ifndef WIRE_TLS_SESSION_H
#define WIRE_TLS_SESSION_H

#include "wire/tls.h"

#include <openssl/ssl.h>

/* Creates a TLS session, which the caller owns. server: this side accepts the handshake. NULL: no
 * memory is left. The server's handshake writes to *ret_peer the identity that the client claims;
 * the claim is proved when tls_proved returns true. ret_peer may be NULL; otherwise it must live as
 * long as the session. */
SSL *tls_session(struct tls *tls, bool server, struct tls_peer *ret_peer) MUST_CHECK;

/* true: both sides proved in the finished handshake that they have the key. */
bool tls_proved(const SSL *session);

/* Returns the text of an OpenSSL error for a user: whose fault it is, as far as known. */
const char *tls_reason(unsigned long error);

#endif
