/*
 * Goal: the backend on etcd keeps the port's contract.
 * Method: the suite on a real etcd, each test under a prefix of its own.
 */
#define _GNU_SOURCE
#include "tests/integration/coord/etcd_fixture.h"

#define SEEDS_USUAL 2
#include "tests/contract/coord/coord_suite.h"

static struct etcd server;

static void
backend_begin(void)
{
    etcd_shared(&server);
}

static void
backend_join(struct view *view, const char *role, const char *node)
{
    ck_assert(role == NULL || strcmp(role, "scheduler") == 0);
    view_open(view, &server, node);
}

static void
backend_part(struct view *view)
{
    view_close(view);
}

static void
backend_revoke(const char *node)
{
    char name[96];
    toc_format(name, sizeof name, "members/scheduler/%s", node);
    etcd_revoke(&server, etcd_lease_of(&server, name));
}

static void
backend_end(void)
{
}

TOC_CHECK_MAIN("coord contract: etcd", COORD_SUITE)
