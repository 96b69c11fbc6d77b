/*
 * token.h: a token with which a host joins a job: 64 hexadecimal digits, as `hvd-elastic token
 * create` or `openssl rand -hex 32` prints them. A process that has the digits can join; the digits
 * are never sent. Both ends of a handshake use a key that is derived from the digits, and the
 * driver keeps that key and an id.
 */
#ifndef WIRE_TOKEN_H
#define WIRE_TOKEN_H

#include "wire/tls.h"

#define TOKEN_DIGITS 64
/* bytes of an id with its NUL: 8 digits, which name the token in lists and logs, and reveal
 * nothing of its key */
#define TOKEN_ID_MAX 9

struct token {
    char id[TOKEN_ID_MAX];
    uint8_t key[TLS_KEY_BYTES];
};

/* Makes a new token: its digits, from the kernel's random source. Fails with HVD_E_IO. */
int token_draw(char ret_digits[TOKEN_DIGITS + 1], struct hvd_err *err) MUST_CHECK;

/* Derives the key and the id of a token from its digits. HVD_E_INVAL: the text is no token; the err
 * does not quote it. Fails with HVD_E_NOMEM. */
int token_of(const char *digits, struct token *ret_token, struct hvd_err *err) MUST_CHECK;

/* Reads a file that has a token and nothing else but blanks around it; the copy of the text in
 * memory is wiped. The codes of file_read and token_of; the error names the file. */
int token_read(const char *path, struct token *ret_token, struct hvd_err *err) MUST_CHECK;

/* Writes "ID KEY", the form in which the driver keeps a token; TOKEN_TEXT_MAX with the NUL. */
#define TOKEN_TEXT_MAX (LIMIT_TOKEN_TEXT_BYTES + 1)
void token_write(const struct token *token, char ret_text[TOKEN_TEXT_MAX]);

/* Reads the form that token_write has written. HVD_E_INVAL: the text has another form. */
int token_parse(const char *text, struct token *ret_token) MUST_CHECK;

#endif
