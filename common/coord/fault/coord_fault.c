#include "common/coord/fault/coord_fault.h"

#include "common/base/alloc.h"
#include "common/base/cleanup.h"

#include <string.h>

/* What every operation does around the inner one's call. */
#define WITH_FAULTS(name, call)                              \
    static const struct toc_fault_op op = {"coord", name};   \
    enum toc_fault how = toc_fault_before(fault->plan, &op); \
    enum toc_status st;                                      \
                                                             \
    if (how == TOC_FAULT_FAIL)                               \
        return toc_fault_failed(&op, reterr);                \
    st = toc_fault_after(fault->plan, &op, how, call, reterr)

static enum toc_status
fault_poll(void *self, int64_t timeout_ms, toc_coord_event_fn *fn, void *arg,
           struct toc_error *reterr)
{
    struct toc_coord_fault *fault = self;

    WITH_FAULTS("poll",
                toc_coord_poll(fault->inner, timeout_ms, fn, arg, reterr));
    return st;
}

static enum toc_status
fault_acquire(void *self, const uint16_t *shards, size_t n, bool *ret_won,
              struct toc_error *reterr)
{
    struct toc_coord_fault *fault = self;
    TOC_AUTO_FREE bool *won = TOC_NEW_ARRAY(bool, n);

    WITH_FAULTS("acquire",
                toc_coord_acquire(fault->inner, shards, n, won, reterr));
    if (st == TOC_OK)
        memcpy(ret_won, won, n * sizeof *won);
    return st;
}

static enum toc_status
fault_release(void *self, const uint16_t *shards, size_t n,
              struct toc_error *reterr)
{
    struct toc_coord_fault *fault = self;

    WITH_FAULTS("release", toc_coord_release(fault->inner, shards, n, reterr));
    return st;
}

static enum toc_status
fault_want(void *self, const uint16_t *shards, size_t n, bool wanted,
           struct toc_error *reterr)
{
    struct toc_coord_fault *fault = self;

    WITH_FAULTS("want",
                toc_coord_want(fault->inner, shards, n, wanted, reterr));
    return st;
}

static enum toc_status
fault_leave(void *self, struct toc_error *reterr)
{
    struct toc_coord_fault *fault = self;

    WITH_FAULTS("leave", toc_coord_leave(fault->inner, reterr));
    return st;
}

static enum toc_status
fault_snapshot(void *self, struct toc_arena *arena,
               struct toc_member **ret_members, size_t *ret_n_members,
               struct toc_owner **ret_owners, size_t *ret_n_owners,
               struct toc_error *reterr)
{
    struct toc_coord_fault *fault = self;
    struct toc_member *members = NULL;
    struct toc_owner *owners = NULL;
    size_t n_members = 0, n_owners = 0;

    WITH_FAULTS("snapshot",
                toc_coord_snapshot(fault->inner, arena, &members, &n_members,
                                   &owners, &n_owners, reterr));
    if (st != TOC_OK)
        return st;
    *ret_members = members;
    *ret_n_members = n_members;
    *ret_owners = owners;
    *ret_n_owners = n_owners;
    return TOC_OK;
}

static int64_t
fault_deadline(void *self)
{
    static const struct toc_fault_op op = {"coord", "deadline"};
    struct toc_coord_fault *fault = self;

    if (toc_fault_before(fault->plan, &op) == TOC_FAULT_FAIL)
        return 0;
    return toc_coord_deadline_boot_ns(fault->inner);
}

static void
fault_wake(void *self)
{
    struct toc_coord_fault *fault = self;

    toc_coord_wake(fault->inner);
}

static void
fault_interrupt(void *self)
{
    struct toc_coord_fault *fault = self;

    toc_coord_interrupt(fault->inner);
}

static const struct toc_coord_ops fault_ops = {
    .name = "fault",
    .poll = fault_poll,
    .acquire = fault_acquire,
    .release = fault_release,
    .want = fault_want,
    .leave = fault_leave,
    .snapshot = fault_snapshot,
    .deadline_boot_ns = fault_deadline,
    .wake = fault_wake,
    .interrupt = fault_interrupt,
};

void
toc_coord_fault_init(struct toc_coord_fault *fault, struct toc_coord *inner,
                     const struct toc_fault_plan *plan)
{
    *fault = (struct toc_coord_fault){
        .port = {&fault_ops, fault}, .inner = inner, .plan = plan};
}
