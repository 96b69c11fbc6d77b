/*
 * token.c: tokens with which hosts join a job, their keys and ids. Called by the agent that joins,
 * by the driver and by `hvd-elastic token`. Invariant: no error quotes a token, and every copy of
 * its digits here is wiped.
 */
#include "wire/token.h"

#include "base/buf.h"
#include "base/hex.h"
#include "os/file.h"
#include "seal/seal.h"

#include <stdio.h>
#include <string.h>

#define ID_BYTES ((TOKEN_ID_MAX - 1) / 2)

/* Makes a new token from the kernel's random source. Its digits are the secret that an operator
 * gives to a host that is to join. */
int token_draw(char ret_digits[TOKEN_DIGITS + 1], struct hvd_err *err)
{
    uint8_t bytes[TOKEN_DIGITS / 2];

    if (seal_random(bytes, sizeof(bytes)))
        return err_set(err, HVD_E_IO,
                       "the kernel gives no random bytes for a token; allow the call getrandom in "
                       "this container");
    hex_write(bytes, sizeof(bytes), ret_digits);
    seal_wipe(bytes, sizeof(bytes));
    return 0;
}

/* Derives the key of a token from its digits, and the id from the key: the id tells tokens apart
 * and reveals nothing of the digits. */
int token_of(const char *digits, struct token *ret_token, struct hvd_err *err)
{
    uint8_t bytes[TOKEN_DIGITS / 2], id[ID_BYTES];
    struct token token;
    int rc = HVD_E_INVAL;

    if (strlen(digits) == TOKEN_DIGITS && hex_read_typed(digits, sizeof(bytes), bytes))
        rc = seal_derive(bytes, sizeof(bytes), "hvd token key", "", 0, token.key, TLS_KEY_BYTES);
    if (!rc)
        rc = seal_derive(token.key, TLS_KEY_BYTES, "hvd token id", "", 0, id, sizeof(id));
    if (!rc) {
        hex_write(id, sizeof(id), token.id);
        *ret_token = token;
    }
    seal_wipe(bytes, sizeof(bytes));
    seal_wipe(&token, sizeof(token));
    if (rc == HVD_E_INVAL)
        return err_set(err, rc,
                       "not a token, which is %d hexadecimal digits; make one with 'hvd-elastic "
                       "token create', or with 'openssl rand -hex 32'",
                       TOKEN_DIGITS);
    return rc ? err_set(err, rc, "%s", err_text(rc)) : 0;
}

/* Reads the file in which a host that joins has its token. The text may have blanks around the
 * token and nothing else; any other text is refused as a wrong token by token_of. */
int token_read(const char *path, struct token *ret_token, struct hvd_err *err)
{
    struct buf text;
    char digits[TOKEN_DIGITS + 1] = "";
    size_t begin, length;
    int rc;

    buf_init(&text, 2 * TOKEN_DIGITS);
    rc = file_read(path, &text, err);
    if (!rc) {
        begin = strspn(buf_text(&text), " \t\r\n");
        length = strcspn(buf_text(&text) + begin, " \t\r\n");
        if (length == TOKEN_DIGITS &&
            begin + length + strspn(buf_text(&text) + begin + length, " \t\r\n") == text.length)
            memcpy(digits, buf_text(&text) + begin, length);
        rc = token_of(digits, ret_token, err);
        if (rc)
            rc = err_prefix(err, rc, "%s", path);
    }
    seal_wipe(digits, sizeof(digits));
    buf_release(&text); /* buf_release also wipes the text */
    return rc;
}

/* Writes "ID KEY" for the driver's records: the id, a blank, the key in hexadecimal digits, a
 * NUL. */
void token_write(const struct token *token, char ret_text[TOKEN_TEXT_MAX])
{
    memcpy(ret_text, token->id, TOKEN_ID_MAX - 1);
    ret_text[TOKEN_ID_MAX - 1] = ' ';
    hex_write(token->key, TLS_KEY_BYTES, ret_text + TOKEN_ID_MAX);
}

/* Reads what token_write has written. HVD_E_INVAL: the text has another form; *ret_token is then
 * untouched. */
int token_parse(const char *text, struct token *ret_token)
{
    struct token token;

    if (strlen(text) != TOKEN_TEXT_MAX - 1 || text[TOKEN_ID_MAX - 1] != ' ' ||
        !hex_read_typed(text + TOKEN_ID_MAX, TLS_KEY_BYTES, token.key))
        return HVD_E_INVAL;
    memcpy(token.id, text, TOKEN_ID_MAX - 1);
    token.id[TOKEN_ID_MAX - 1] = '\0';
    *ret_token = token;
    seal_wipe(&token, sizeof(token));
    return 0;
}
