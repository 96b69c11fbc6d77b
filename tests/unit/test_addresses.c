/*
 * test_addresses.c: worker/addresses.c: of the addresses that a member has told, the first of a
 * kind is found, and the host of an address is cut out of it.
 */
#include "tests/lib/fixture.h"
#include "worker/addresses.h"

TEST(the_first_of_a_kind)
{
    static const char *const items[] = { "data", "dat=1", "state=10.0.0.7:1", "data=a=b",
                                         "data=c" };
    const struct msg_texts all = { items, ARRAY_SIZE(items) };
    const struct msg_texts none = { NULL, 0 };

    CHECK_TEXT(t, addresses_find(&all, "data"), "a=b");
    CHECK_TEXT(t, addresses_find(&all, "state"), "10.0.0.7:1");
    CHECK(t, !addresses_find(&all, "stat"));
    CHECK(t, !addresses_find(&none, "data"));
}

TEST(the_host_of_an_address)
{
    char host[16];

    CHECK_OK(t, addresses_host("10.0.0.7:4001", host, sizeof(host)));
    CHECK_TEXT(t, host, "10.0.0.7");
    CHECK_OK(t, addresses_host("[::1]:4001", host, sizeof(host)));
    CHECK_TEXT(t, host, "::1");
    CHECK_CODE(t, addresses_host("4001", host, sizeof(host)), HVD_E_INVAL);
    CHECK_CODE(t, addresses_host(":4001", host, sizeof(host)), HVD_E_INVAL);
    CHECK_CODE(t, addresses_host("[:4001", host, sizeof(host)), HVD_E_INVAL);
    CHECK_CODE(t, addresses_host("[]:4001", host, sizeof(host)), HVD_E_INVAL);
    CHECK_CODE(t, addresses_host("123456789.123456:1", host, sizeof(host)), HVD_E_LIMIT);
    CHECK_TEXT(t, host, "::1");
}
