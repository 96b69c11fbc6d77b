/*
 * token.c: the verb "token": makes, shows and revokes the tokens with which hosts join a job
 * (`hvd-agent --join`). The digits of a new token are drawn and printed by this process: the driver
 * gets only the key that is derived from them. On the connection the three requests are
 * "token-create", "tokens" and "token-revoke".
 */
#include "driver/cli/verbs.h"

#include "base/text.h"
#include "wire/token.h"

#include <stdio.h>
#include <string.h>

/* Makes the request for a new token. With --file the digits are those in the file. Otherwise they
 * are drawn now, and token_print prints them when the driver has the token. */
static int token_create(struct cli_request *request, struct hvd_err *err)
{
    const struct cli_options *options = &request->options;
    struct token token;
    int rc = 0;

    if (options->file) {
        rc = token_read(options->file, &token, err);
    } else {
        rc = token_draw(request->digits, err);
        if (!rc)
            rc = token_of(request->digits, &token, err);
    }
    if (rc)
        return rc;
    token_write(&token, request->token);
    explicit_bzero(&token, sizeof(token));
    snprintf(request->number, sizeof(request->number), "%llu", (unsigned long long)options->uses);
    request->ask.verb = "token-create";
    cli_add_arg(request, request->token);
    cli_add_arg(request, time_format(options->lifetime_us, request->time));
    cli_add_arg(request, request->number);
    cli_add_arg(request, options->host ? options->host : "");
    return 0;
}

/* Makes the request from the word after "token": create, list, or revoke with the token's id. */
static int token_verb_read(struct cli_request *request, struct hvd_err *err)
{
    const char *word = cli_next_word(request);

    if (word && !strcmp(word, "create"))
        return token_create(request, err);
    if (word && !strcmp(word, "list")) {
        request->ask.verb = "tokens";
        return 0;
    }
    if (!word || strcmp(word, "revoke") != 0)
        return err_set(
            err, HVD_E_INVAL,
            "token: say what to do; write 'token create', 'token list' or 'token revoke TOKEN'");
    word = cli_next_word(request);
    if (!word)
        return err_set(err, HVD_E_INVAL,
                       "token revoke: the token is missing; write the 8 digits of 'token list'");
    request->ask.verb = "token-revoke";
    cli_add_arg(request, word);
    return 0;
}

/* Called when the driver has accepted the request: prints the digits of a token that was drawn, and
 * overwrites them in memory. */
static void token_print(struct cli_request *request)
{
    if (*request->digits)
        printf("%s\n", request->digits);
    explicit_bzero(request->digits, sizeof(request->digits));
}

const struct cli_verb cli_token = {
    .name = "token",
    .words = "create|list|revoke TOKEN ",
    .about =
        "Makes, shows or revokes the tokens with which hosts join a job that was started with "
        "--discovery join. create prints a token: put it into a file that only you can read, and "
        "give that to hvd-agent --join. A host that has joined stays when its token expires or is "
        "used up, and comes back with it after a break. When its token is revoked, the host stays "
        "only as long as it is connected, and needs another token to come back.",
    .read = token_verb_read,
    .done = token_print,
};
