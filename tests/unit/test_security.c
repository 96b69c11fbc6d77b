/*
 * The rules of --data-security, with given measurements. That two hosts measure, and really encrypt
 * after a slow round: tests/integration/link_auto.sh.
 */
#include "collectives/link/security.h"
#include "tests/lib/test.h"

static bool is(struct tcp_wish wish, enum seal_mode least, enum seal_mode most)
{
    return wish.least == least && wish.most == most;
}

TEST(cheap_is_less_than_a_tenth_of_a_transfer)
{
    static const struct {
        int64_t extra_us;
        uint64_t mib_us;
        bool cheap;
    } cases[] = {
        {-1,               0,                             false}, /* nothing was measured */
        { -1,              1000000,                       false}, /* the host was, encryption was not */
        { 110,             0,                             false}, /* encryption was, the host was not */
        { 0,               0,                             false},
        { 110,             100,                           false}, /* 10 GB/s: more than the transfer */
        { 110,             1000,                          false}, /* 11 % */
        { 100,             1000,                          false}, /* exactly 10 % */
        { 99,              1000,                          true },
        { 110,             1101,                          true },
        { 110,             8389,                          true }, /* 1 Gbit/s */
        { 0,               1,                             true }, /* as fast as a MAC */
        { INT64_MAX / 100, UINT64_MAX / SECURITY_PERCENT, true },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        CHECK(t, security_is_cheap(cases[i].extra_us, cases[i].mib_us) == cases[i].cheap);
out:;
}

TEST(auto_is_clear_inside_a_machine_only)
{
    for (int cheap = 0; cheap < 2; cheap++)
        CHECK(t, is(security_wish(LINK_SECURITY_AUTO, true, cheap), SEAL_PLAIN, SEAL_PLAIN));
    CHECK(t, is(security_wish(LINK_SECURITY_AUTO, false, false), SEAL_AUTHENTICATED,
                SEAL_AUTHENTICATED));
    CHECK(t,
          is(security_wish(LINK_SECURITY_AUTO, false, true), SEAL_AUTHENTICATED, SEAL_ENCRYPTED));
out:;
}

TEST(an_option_is_obeyed_everywhere)
{
    for (int i = 0; i < 4; i++) {
        bool inside = i & 1, cheap = i & 2;

        CHECK(t, is(security_wish(LINK_SECURITY_NONE, inside, cheap), SEAL_PLAIN, SEAL_PLAIN));
        CHECK(t, is(security_wish(LINK_SECURITY_AUTHENTICATED, inside, cheap), SEAL_AUTHENTICATED,
                    SEAL_AUTHENTICATED));
        CHECK(t, is(security_wish(LINK_SECURITY_ENCRYPTED, inside, cheap), SEAL_ENCRYPTED,
                    SEAL_ENCRYPTED));
    }
out:;
}

/* A link of `auto` is encrypted when both ends have found it cheap, and never in clear. */
TEST(both_ends_decide)
{
    const struct tcp_wish dear = security_wish(LINK_SECURITY_AUTO, false, false);
    const struct tcp_wish cheap = security_wish(LINK_SECURITY_AUTO, false, true);

    CHECK_INT(t, tcp_wish_agree(cheap, cheap), ==, SEAL_ENCRYPTED);
    CHECK_INT(t, tcp_wish_agree(cheap, dear), ==, SEAL_AUTHENTICATED);
    CHECK_INT(t, tcp_wish_agree(dear, cheap), ==, SEAL_AUTHENTICATED);
    CHECK_INT(t, tcp_wish_agree(dear, dear), ==, SEAL_AUTHENTICATED);
out:;
}

TEST(gloo_sends_in_clear)
{
    for (int inside = 0; inside < 2; inside++) {
        CHECK(t, security_allows_gloo(LINK_SECURITY_NONE, inside));
        CHECK(t, security_allows_gloo(LINK_SECURITY_AUTO, inside) == inside);
        CHECK(t, !security_allows_gloo(LINK_SECURITY_AUTHENTICATED, inside));
        CHECK(t, !security_allows_gloo(LINK_SECURITY_ENCRYPTED, inside));
    }
out:;
}

TEST(nccl_sends_in_clear_between_hosts)
{
    static const enum link_security all[] = { LINK_SECURITY_AUTO, LINK_SECURITY_ENCRYPTED,
                                              LINK_SECURITY_AUTHENTICATED, LINK_SECURITY_NONE };

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        bool lenient = all[i] == LINK_SECURITY_AUTO || all[i] == LINK_SECURITY_NONE;

        CHECK(t, security_allows_nccl(all[i], 1));
        CHECK(t, security_allows_nccl(all[i], 2) == lenient);
        CHECK(t, security_allows_nccl(all[i], 1000) == lenient);
        CHECK(t, !security_tells_of_nccl(all[i], 1, false));
        CHECK(t, !security_tells_of_nccl(all[i], 2, true));
        CHECK(t, security_tells_of_nccl(all[i], 2, false) == (all[i] == LINK_SECURITY_AUTO));
    }
out:;
}
