/* The thin layer over a backend: checks what every backend must keep. */
#include "common/coord/coord.h"

#include "common/base/assert.h"

enum toc_status
toc_coord_poll(struct toc_coord *coord, int64_t timeout_ms,
               toc_coord_event_fn *fn, void *arg, struct toc_error *reterr)
{
    TOC_ASSERT(fn != NULL);
    if (timeout_ms < 0)
        timeout_ms = 0;
    return coord->ops->poll(coord->self, timeout_ms, fn, arg, reterr);
}

enum toc_status
toc_coord_acquire(struct toc_coord *coord, const uint16_t *shards, size_t n,
                  bool *ret_won, struct toc_error *reterr)
{
    if (n == 0)
        return TOC_OK;
    return coord->ops->acquire(coord->self, shards, n, ret_won, reterr);
}

enum toc_status
toc_coord_release(struct toc_coord *coord, const uint16_t *shards, size_t n,
                  struct toc_error *reterr)
{
    if (n == 0)
        return TOC_OK;
    return coord->ops->release(coord->self, shards, n, reterr);
}

enum toc_status
toc_coord_want(struct toc_coord *coord, const uint16_t *shards, size_t n,
               bool wanted, struct toc_error *reterr)
{
    if (n == 0)
        return TOC_OK;
    return coord->ops->want(coord->self, shards, n, wanted, reterr);
}

enum toc_status
toc_coord_leave(struct toc_coord *coord, struct toc_error *reterr)
{
    return coord->ops->leave(coord->self, reterr);
}

enum toc_status
toc_coord_snapshot(struct toc_coord *coord, struct toc_arena *arena,
                   struct toc_member **ret_members, size_t *ret_n_members,
                   struct toc_owner **ret_owners, size_t *ret_n_owners,
                   struct toc_error *reterr)
{
    return coord->ops->snapshot(coord->self, arena, ret_members, ret_n_members,
                                ret_owners, ret_n_owners, reterr);
}

int64_t
toc_coord_deadline_boot_ns(struct toc_coord *coord)
{
    int64_t deadline = coord->ops->deadline_boot_ns(coord->self);
    TOC_ASSERT(deadline >= 0);
    return deadline;
}

void
toc_coord_wake(struct toc_coord *coord)
{
    coord->ops->wake(coord->self);
}

void
toc_coord_interrupt(struct toc_coord *coord)
{
    if (coord->ops->interrupt != NULL)
        coord->ops->interrupt(coord->self);
}
